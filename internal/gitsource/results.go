package gitsource

import "github.com/trainyard/trainyard/internal/result"

// WriteResults writes what later tasks and Tekton Chains read, one file for each,
// without a line break at the end: Tekton would keep it in the middle of whatever
// uses the value. The CHAINS- results are a statement about where an image comes
// from: they stay empty unless the source is exactly that commit. Write them on
// every way out, with an empty Result where nothing was fetched: a missing one
// makes later tasks be skipped in silence.
func (r Result) WriteResults(dir string) error {
	url, commit := r.URL, r.Commit
	if !r.Verified || url == "" {
		url, commit = "", ""
	}
	return result.Write(dir, map[string]string{
		"url": r.URL, "commit": r.Commit, "CHAINS-GIT_URL": url, "CHAINS-GIT_COMMIT": commit,
	})
}
