package registry

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

var (
	// ErrMoved means that the alias does not have the expected version any
	// more. errors.Is(err, store.ErrLost) holds, too.
	ErrMoved = fmt.Errorf("alias moved meanwhile: %w", store.ErrLost)

	// ErrConflict means that a version exists with other files than those
	// that are to be added.
	ErrConflict = errors.New("version exists with other content")

	// ErrNoPrevious means that there is nothing to roll back to.
	ErrNoPrevious = errors.New("no earlier version")
)

// Options are what a test may want to replace.
type Options struct {
	Now   func() time.Time                           // nil: time.Now
	Sleep func(context.Context, time.Duration) error // nil: a timer
}

// Registry keeps models in a store. It holds no state: any number of processes
// may use the same store.
type Registry struct {
	store store.Store
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

// New returns the registry in s.
func New(s store.Store, opts Options) *Registry {
	r := &Registry{store: s, now: opts.Now, sleep: opts.Sleep}
	if r.now == nil {
		r.now = time.Now
	}
	if r.sleep == nil {
		r.sleep = store.Sleep
	}
	return r
}

// Location is the URL of the folder of a version, such as a model server wants.
func (r *Registry) Location(model, version string) string {
	return strings.TrimSuffix(r.store.URL(), "/") + "/" + versionDir(model, version)
}

// Models returns the names of all models that have a version or a history.
func (r *Registry) Models(ctx context.Context) ([]string, error) {
	infos, err := r.store.List(ctx, "models/")
	if err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	var names []string
	for _, info := range infos { // sorted, so equal names are neighbours
		name, _, _ := strings.Cut(strings.TrimPrefix(info.Key, "models/"), "/")
		if checkName("model", name) == nil && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func modelDir(model string) string            { return path.Join("models", model) }
func versionDir(model, version string) string { return path.Join("models", model, version) }
func aliasKey(model, alias string) string {
	return path.Join("models", model, "aliases", alias+".json")
}
func historyDir(model string) string { return path.Join("models", model, "history") + "/" }
func eventKey(model string, seq int64) string {
	return fmt.Sprintf("%s%010d.json", historyDir(model), seq)
}

// checkName guards names that become parts of keys.
func checkName(what, name string) error {
	ok := name != "" && len(name) <= 100 && !strings.Contains(name, "..")
	for i, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '-' || c == '_' || c == '.'):
		default:
			ok = false
		}
	}
	if !ok {
		return fmt.Errorf("%s name %.120q: use up to 100 letters, digits, '-', '_' and '.', beginning with a letter or digit", what, name)
	}
	return nil
}

// checkVersion guards digests that become parts of keys.
func checkVersion(version string) error {
	if !isDigest(version) {
		return fmt.Errorf("version %.80q: must be the sha256 of model.safetensors, 64 hexadecimal digits in lower case", version)
	}
	return nil
}

func isDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// CheckNames says whether model and alias are names that a registry takes.
func CheckNames(model, alias string) error { return checkAlias(model, alias) }

func checkAlias(model, alias string) error {
	if err := checkName("model", model); err != nil {
		return err
	}
	if isDigest(alias) {
		return fmt.Errorf("alias name %q: looks like a version", alias)
	}
	return checkName("alias", alias)
}
