// Package commitstatus tells the forge how the run of a push fares: a commit status
// at the commit that was pushed. From, Cut and Link say what is told; Client tells it
// to GitHub, GitLab or Gitea (and so Forgejo); Reporter watches the runs of a
// namespace and tells each state once.
//
// It changes nothing of a run but one annotation, pushrun.ReportedAnnotation, in
// which it keeps what the forge knows. Who starts runs, and which of them wait, is
// others' business.
//
// There is no library of a forge here. Of each of them we need a single POST with
// four or five fields; a library of GitHub would help with a third of that, bring its
// own notions of retrying and of following redirects with the token, and no module of
// ours requires one.
package commitstatus
