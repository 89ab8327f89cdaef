package commitstatus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/pushrun"
)

const (
	postTimeout  = 15 * time.Second
	maxAnswer    = 64 << 10
	maxRedirects = 3
)

// Client tells one forge.
type Client struct {
	dialect   dialect
	base      *url.URL
	tokenFile string
	transport http.RoundTripper // follows no redirect: post looks where they lead
	timeout   time.Duration
	now       func() time.Time
}

// NewClient returns a client of the forge whose API is at an address, such as
// https://api.github.com, https://github.example.com/api/v3, https://gitlab.com,
// https://gitea.example.com. Plain http is for hosts (with their port) that insecure
// lists. The token is read from the file at each use.
func NewClient(forge pushrun.Forge, address, tokenFile string, insecure []string) (*Client, error) {
	base, err := parseBase(address, insecure)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", forge, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = maxAnswer
	return &Client{
		dialect: dialectOf(forge), base: base, tokenFile: tokenFile,
		transport: transport, timeout: postTimeout, now: time.Now,
	}, nil
}

// Post tells the forge a status of a commit. What it could not tell is a
// *RefusedError or a *LaterError, or errNoToken.
func (c *Client) Post(ctx context.Context, p pushrun.Push, s Status) error {
	t, err := c.token()
	if err != nil {
		return err
	}
	return c.post(ctx, t, p, s)
}

func (c *Client) token() (token, error) {
	t, err := readToken(c.tokenFile)
	if err != nil && !errors.Is(err, errNoToken) {
		return t, &RefusedError{Forge: c.dialect.name, Reason: "no token to use", Remedy: err.Error()}
	}
	return t, err
}

func (c *Client) post(ctx context.Context, t token, p pushrun.Push, s Status) error {
	path, err := c.dialect.path(p)
	if err != nil {
		return &RefusedError{Forge: c.dialect.name, Reason: err.Error(), Remedy: "correct the annotation " + pushrun.RepositoryLabel + " of the run"}
	}
	body, err := json.Marshal(c.dialect.body(s, c.dialect.states[s.State], p))
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	to := c.base.String() + path
	for range maxRedirects + 1 {
		code, h, answer, err := c.send(ctx, t, to, body)
		if err != nil {
			return err
		}
		next, err := c.redirect(t, code, h, to)
		if err != nil {
			return err
		}
		if next == "" {
			return c.judge(code, h, t.hide(messageOf(answer, h.Get("Content-Type"))))
		}
		to = next
	}
	return &RefusedError{Forge: c.dialect.name, Reason: fmt.Sprintf("more than %d redirects", maxRedirects), Remedy: "see whether " + c.base.String() + " is the address of its API"}
}

func (c *Client) send(ctx context.Context, t token, to string, body []byte) (int, http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, &RefusedError{Forge: c.dialect.name, Reason: "no request can be made", Remedy: "see whether " + c.base.String() + " is the address of its API"}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "trainyard")
	c.dialect.authorize(req.Header, t.secret)
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return 0, nil, nil, &LaterError{Forge: c.dialect.name, Reason: "ask " + c.base.Host + ": " + t.hide(oneLine(err.Error()))}
	}
	defer resp.Body.Close()
	// An answer that breaks off after its status has said what matters.
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && resp.StatusCode != http.StatusCreated {
		return 0, nil, nil, &LaterError{Forge: c.dialect.name, Reason: fmt.Sprintf("%d, and then %s", resp.StatusCode, t.hide(oneLine(err.Error())))}
	}
	return resp.StatusCode, resp.Header, answer, nil
}

// redirect says where an answer leads to, if it does. A repository that was renamed
// answers so, and the request is made there once more as it was, by POST, as GitHub
// asks for. The token goes to no other host.
func (c *Client) redirect(t token, code int, h http.Header, from string) (string, error) {
	switch code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return "", nil
	}
	refuse := func(reason string) error {
		return &RefusedError{Forge: c.dialect.name, Code: code, Reason: t.hide(reason), Remedy: "the token is sent to " + c.base.Host + " alone: see whether " + c.base.String() + " is the address of its API"}
	}
	base, err := url.Parse(from)
	if err != nil {
		return "", refuse("a redirect that leads nowhere")
	}
	to, err := base.Parse(h.Get("Location"))
	if err != nil || h.Get("Location") == "" {
		return "", refuse("a redirect that leads nowhere")
	}
	if to.Scheme != c.base.Scheme || !strings.EqualFold(to.Host, c.base.Host) || to.User != nil {
		return "", refuse("a redirect to " + Cut(to.Scheme+"://"+to.Host, 100))
	}
	return to.String(), nil
}
