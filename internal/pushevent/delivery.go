package pushevent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// maxBody is GitHub's: of a larger event it tells nobody.
const maxBody = 25 << 20

// Origin is the forge and the repository that an event is from.
type Origin struct {
	Forge      pushrun.Forge
	Repository string // owner/name; a GitLab project may have more groups before it
	// CloneURL is the repository's address as the event has it.
	CloneURL string
	// DefaultBranch of the repository.
	DefaultBranch string
	// Sender is the account that pushed.
	Sender string
}

// Delivery is one event as it goes out.
type Delivery struct {
	ID     string
	Event  string            // push
	Header map[string]string // by name as the forge writes it
	Body   []byte
}

var (
	repositoryForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`)
	deliveryForm   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
)

// addresses of the public forges, for repositories of which nobody says where they are.
func server(forge pushrun.Forge) string {
	switch forge {
	case pushrun.GitLab:
		return "https://gitlab.com/"
	case pushrun.Gitea:
		return "https://gitea.com/"
	}
	return "https://github.com/"
}

// complete checks an origin and fills in what nobody said.
func (o Origin) complete() (Origin, error) {
	switch o.Forge {
	case pushrun.GitHub, pushrun.GitLab, pushrun.Gitea:
	default:
		return o, exitcode.Errorf(exitcode.Usage, "forge is %q: say github, gitlab or gitea (also for Forgejo)", o.Forge)
	}
	slashes := strings.Count(o.Repository, "/")
	if !repositoryForm.MatchString(o.Repository) || slashes > 1 && o.Forge != pushrun.GitLab {
		return o, exitcode.Errorf(exitcode.Usage, "repository is %.80q: say owner/name", o.Repository)
	}
	if o.CloneURL == "" {
		o.CloneURL = server(o.Forge) + o.Repository + ".git"
	}
	if u, err := url.Parse(o.CloneURL); err != nil || u.Scheme == "" || u.User != nil {
		return o, exitcode.Errorf(exitcode.Usage, "clone-url is no address, or has credentials in it: say https://host/owner/name.git")
	}
	if o.DefaultBranch == "" {
		o.DefaultBranch = "main"
	}
	if o.Sender == "" {
		o.Sender = "yard-push-event"
	}
	return o, nil
}

// Check says what is wrong with an origin.
func (o Origin) Check() error {
	_, err := o.complete()
	return err
}

// web is the repository's page.
func (o Origin) web() string { return strings.TrimSuffix(o.CloneURL, ".git") }

func (o Origin) owner() string { return o.Repository[:strings.LastIndexByte(o.Repository, '/')] }

func (o Origin) name() string { return o.Repository[strings.LastIndexByte(o.Repository, '/')+1:] }

// email of the sender.
func (o Origin) email() string { return o.Sender + "@users.noreply.example.com" }

// host of the repository.
func (o Origin) host() string {
	u, err := url.Parse(o.CloneURL)
	if err != nil {
		return "" // complete has looked
	}
	return u.Hostname()
}

// number makes up the number that a forge has for a thing: always the same one.
func number(kind, name string) uint32 {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return binary.BigEndian.Uint32(sum[:]) >> 4
}

// limit is how many commits a forge lists in an event.
func limit(forge pushrun.Forge) int {
	switch forge {
	case pushrun.GitLab:
		return 20
	case pushrun.Gitea:
		return 5 // FEED_MAX_COMMIT_NUM
	}
	return 2048
}

// NewID makes up the number of a delivery: a UUID of version 4.
func NewID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}

// New makes the event that a forge sends of a change.
func New(o Origin, c Change, secret []byte, id string) (Delivery, error) {
	o, err := o.complete()
	if err != nil {
		return Delivery{}, err
	}
	if !deliveryForm.MatchString(id) {
		return Delivery{}, exitcode.Errorf(exitcode.Usage, "delivery is %.80q: say a UUID", id)
	}
	d := Delivery{ID: id}
	var payload any
	switch o.Forge {
	case pushrun.GitLab:
		d.Event, payload = gitLabEvent(o, c)
	case pushrun.Gitea:
		d.Event, payload = giteaEvent(o, c)
	default:
		d.Event, payload = "push", gitHubPush(o, c)
	}
	if d.Body, err = json.Marshal(payload); err != nil {
		return Delivery{}, err
	}
	if len(d.Body) > maxBody {
		return Delivery{}, exitcode.Errorf(exitcode.BadInput, "the event has %d bytes: forges send none of more than 25 MB", len(d.Body))
	}
	switch o.Forge {
	case pushrun.GitLab:
		d.Header = gitLabHeader(o, d, secret)
	case pushrun.Gitea:
		d.Header = giteaHeader(d, secret)
	default:
		d.Header = gitHubHeader(o, d, secret)
	}
	d.Header["Content-Type"] = "application/json"
	return d, nil
}

// WriteTo writes the request as it would go out, without the secret.
func (d Delivery) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		value := d.Header[name]
		if name == gitLabToken {
			value = "(the secret)"
		}
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	n, err := fmt.Fprintf(w, "%s\n%s\n", b.String(), d.Body)
	return int64(n), err
}
