package commitstatus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/pushrun"
)

var forges = []pushrun.Forge{pushrun.GitHub, pushrun.GitLab, pushrun.Gitea}

func pushTo(kind pushrun.Forge) pushrun.Push {
	return pushrun.Push{Forge: kind, Repository: "owner/name", Branch: "main", Commit: commit}
}

func TestEachForgeIsToldInItsOwnWords(t *testing.T) {
	status := Status{Description: "what there is to say", TargetURL: "https://reports.example.com/r", Context: "trainyard"}
	for kind, words := range map[pushrun.Forge]map[State]string{
		pushrun.GitHub: {Pending: "pending", Running: "pending", Success: "success", Failure: "failure", Error: "error", Cancelled: "error"},
		pushrun.GitLab: {Pending: "pending", Running: "running", Success: "success", Failure: "failed", Error: "failed", Cancelled: "canceled"},
		pushrun.Gitea:  {Pending: "pending", Running: "pending", Success: "success", Failure: "failure", Error: "error", Cancelled: "error"},
	} {
		for state, word := range words {
			t.Run(string(kind)+" "+string(state), func(t *testing.T) {
				f := newForge(t)
				s := status
				s.State = state
				if err := clientOf(t, kind, f.URL).Post(t.Context(), pushTo(kind), s); err != nil {
					t.Fatal(err)
				}
				want := []told{{kind, "owner/name", commit, word, "what there is to say", "https://reports.example.com/r", "trainyard"}}
				if diff := cmp.Diff(want, f.all()); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestAStatusWithoutALinkHasNone(t *testing.T) {
	for _, kind := range forges {
		f := newForge(t)
		f.answers(func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "target_url") {
				t.Errorf("%s: %s", kind, body)
			}
			answer(w, http.StatusCreated, "{}")
		})
		if err := clientOf(t, kind, f.URL).Post(t.Context(), pushTo(kind), Status{State: Success}); err != nil {
			t.Error(err)
		}
	}
}

func TestRepositoriesOfEachForge(t *testing.T) {
	for name, c := range map[string]struct {
		kind             pushrun.Forge
		base, repository string
		refused          bool
	}{
		"a group within a group of GitLab":       {pushrun.GitLab, "", "owner/group/name", false},
		"a dot":                                  {pushrun.GitLab, "", "owner/name.git", false},
		"GitHub Enterprise":                      {pushrun.GitHub, "/api/v3", "owner/name", false},
		"GitHub Enterprise, slash at the end":    {pushrun.GitHub, "/api/v3/", "owner/name", false},
		"GitHub has no groups within a group":    {pushrun.GitHub, "", "owner/group/name", true},
		"Gitea has no groups within a group":     {pushrun.Gitea, "", "owner/group/name", true},
		"a name that would be a path is escaped": {pushrun.Gitea, "", "owner/na?me", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			p := pushTo(c.kind)
			p.Repository = c.repository
			err := clientOf(t, c.kind, f.URL+c.base).Post(t.Context(), p, Status{State: Success})
			var refused *RefusedError
			if errors.As(err, &refused) != c.refused || (err != nil) != c.refused {
				t.Fatal(err)
			}
			if got := len(f.all()); got != map[bool]int{true: 0, false: 1}[c.refused] {
				t.Errorf("%d statuses", got)
			}
		})
	}
}

func TestAnswersOfForges(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) string { return fmt.Sprint(now.Add(d).Unix()) }
	const (
		done = iota
		refused
		later
	)
	for name, c := range map[string]struct {
		kind   pushrun.Forge
		answer http.HandlerFunc
		want   int
		after  time.Duration
		say    string
	}{
		"created": {pushrun.GitHub, says(201, `{"id": 1}`), done, 0, ""},
		"created, and the answer is cut off": {pushrun.GitHub, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(201)
			fmt.Fprint(w, "{")
		}, done, 0, ""},
		"created, and the answer is huge": {pushrun.GitHub, says(201, strings.Repeat("x", 10<<20)), done, 0, ""},

		"GitLab knows already that it waits": {pushrun.GitLab, says(400, `{"message": "Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`), done, 0, ""},
		"GitLab knows already that it runs":  {pushrun.GitLab, says(400, `{"message": "Cannot transition status via :run from :running (Reason(s): Status cannot transition via \"run\")"}`), done, 0, ""},
		"no other forge says that":           {pushrun.Gitea, says(400, `{"message": "Cannot transition status"}`), refused, 0, "Cannot transition"},
		"GitLab refuses a name":              {pushrun.GitLab, says(400, `{"message": {"name": ["has already been taken"]}}`), refused, 0, "has already been taken"},
		"GitLab refuses the state":           {pushrun.GitLab, says(400, `{"error": "state does not have a valid value"}`), refused, 0, "does not have a valid value"},
		"GitLab is busy with the commit":     {pushrun.GitLab, says(409, `{"message": "Another update to this commit status is in progress"}`), later, 0, "in progress"},

		"bad token of GitHub":                {pushrun.GitHub, says(401, `{"message": "Bad credentials"}`), refused, 0, "put a new one into"},
		"bad token of GitLab":                {pushrun.GitLab, says(401, `{"message": "401 Unauthorized"}`), refused, 0, "put a new one into"},
		"GitHub's permission":                {pushrun.GitHub, says(403, `{"message": "Resource not accessible by personal access token"}`), refused, 0, "Commit statuses: read and write"},
		"GitHub hides what may not be seen":  {pushrun.GitHub, says(404, `{"message": "Not Found"}`), refused, 0, "Commit statuses: read and write"},
		"GitLab's permission":                {pushrun.GitLab, says(403, `{"message": "403 Forbidden"}`), refused, 0, "scope api, and in the project role Developer"},
		"GitLab's scope":                     {pushrun.GitLab, says(403, `{"error": "insufficient_scope", "error_description": "The request requires higher privileges"}`), refused, 0, "insufficient_scope The request"},
		"Gitea's scope":                      {pushrun.Gitea, says(403, `{"message": "token does not have at least one of required scope(s): [write:repository]"}`), refused, 0, "scope write:repository"},
		"no such commit":                     {pushrun.GitHub, says(422, `{"message": "No commit found for SHA: 0123"}`), refused, 0, "No commit found"},
		"not valid":                          {pushrun.GitHub, says(422, `{"message": "Validation Failed", "errors": [{"field": "description"}]}`), refused, 0, `[{"field": "description"}]`},
		"a web page instead of an API":       {pushrun.Gitea, says(200, `<html>Sign in</html>`, "Content-Type", "text/html"), refused, 0, "is the address of its API"},
		"a web page that says there is none": {pushrun.Gitea, says(404, `<html>nothing here</html>`, "Content-Type", "text/html"), refused, 0, "the answer is no JSON (text/html)"},
		"another success":                    {pushrun.GitHub, says(204, ``), refused, 0, "nothing was created"},

		"too many, for seconds":                 {pushrun.GitLab, says(429, `{"message": "429 Too Many Requests"}`, "Retry-After", "17"), later, 17 * time.Second, "rate limit"},
		"too many, until a date":                {pushrun.GitLab, says(429, ``, "Retry-After", now.Add(40*time.Second).Format(http.TimeFormat)), later, 40 * time.Second, "rate limit"},
		"too many, until a time of GitLab":      {pushrun.GitLab, says(429, ``, "RateLimit-Remaining", "0", "RateLimit-Reset", in(90*time.Second)), later, 90 * time.Second, "rate limit"},
		"too many, and not for how long":        {pushrun.Gitea, says(429, ``), later, time.Minute, "rate limit"},
		"too many, for nonsense":                {pushrun.Gitea, says(429, ``, "Retry-After", "soon"), later, time.Minute, "rate limit"},
		"too many, for years":                   {pushrun.Gitea, says(429, ``, "Retry-After", "999999999"), later, time.Hour, "rate limit"},
		"too many, for less than nothing":       {pushrun.Gitea, says(429, ``, "Retry-After", "-5"), later, time.Second, "rate limit"},
		"GitHub's limit of the hour":            {pushrun.GitHub, says(403, `{"message": "API rate limit exceeded for user ID 1."}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", in(20*time.Minute)), later, 20 * time.Minute, "rate limit"},
		"GitHub's limit of the hour is over":    {pushrun.GitHub, says(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", in(-time.Minute)), later, time.Second, "rate limit"},
		"GitHub's secondary limit":              {pushrun.GitHub, says(403, `{"message": "You have exceeded a secondary rate limit."}`, "X-RateLimit-Remaining", "4000"), later, time.Minute, "secondary rate limit"},
		"GitHub's secondary limit, for seconds": {pushrun.GitHub, says(403, `{"message": "abuse"}`, "Retry-After", "30"), later, 30 * time.Second, "abuse"},
		"forbidden with a quota left":           {pushrun.GitHub, says(403, `{"message": "Forbidden"}`, "X-RateLimit-Remaining", "10", "X-RateLimit-Reset", in(time.Hour)), refused, 0, "needs repository permission"},

		"broken":                           {pushrun.GitHub, says(500, `{"message": "Server Error"}`), later, 0, "500: Server Error"},
		"a proxy's page":                   {pushrun.GitHub, says(502, `<html>Bad Gateway</html>`, "Content-Type", "text/html"), later, 0, "502"},
		"down for maintenance":             {pushrun.Gitea, says(503, ``, "Retry-After", "120"), later, 2 * time.Minute, "503: service unavailable"},
		"what comes late in a huge answer": {pushrun.GitHub, says(500, `{"pad": "`+strings.Repeat("x", 10<<20)+`", "message": "m"}`), later, 0, "the answer is no JSON"},
		"an answer without an end":         {pushrun.GitHub, says(500, strings.Repeat("x", 10<<20)), later, 0, "500"},
		"the connection breaks off":        {pushrun.GitHub, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, later, 0, "EOF"},
		"slower than we wait": {pushrun.GitHub, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			<-r.Context().Done()
		}, later, 0, "deadline exceeded"},
		"slow in the middle of the answer": {pushrun.GitHub, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			w.WriteHeader(500)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, later, 0, "500, and then"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			f.answers(c.answer)
			client := clientOf(t, c.kind, f.URL)
			client.now = func() time.Time { return now }
			client.timeout = 3 * time.Second
			if strings.HasPrefix(name, "slow") {
				client.timeout = 200 * time.Millisecond
			}
			err := client.Post(t.Context(), pushTo(c.kind), Status{State: Success})
			var no *RefusedError
			var wait *LaterError
			got := done
			switch {
			case errors.As(err, &no):
				got = refused
			case errors.As(err, &wait):
				got = later
				if wait.After != c.after {
					t.Errorf("wait %v, want %v", wait.After, c.after)
				}
			case err != nil:
				t.Fatal(err)
			}
			if got != c.want || !strings.Contains(fmt.Sprint(err), c.say) && c.say != "" {
				t.Errorf("%d, want %d: %v", got, c.want, err)
			}
			if err != nil && (strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 1000) {
				t.Errorf("not one line of a reasonable length: %q", err)
			}
			if n := f.requests(); n != 1 {
				t.Errorf("%d requests: to try again is up to the caller", n)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	to := func(code int, where string) http.HandlerFunc { return says(code, `{}`, "Location", where) }
	renamed := "/repos/owner/renamed/statuses/" + commit
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		ok      bool
		say     string
	}{
		"a renamed repository, 301":    {[]http.HandlerFunc{to(301, renamed)}, true, ""},
		"a renamed repository, 302":    {[]http.HandlerFunc{to(302, renamed)}, true, ""},
		"a renamed repository, 307":    {[]http.HandlerFunc{to(307, renamed)}, true, ""},
		"a renamed repository, 308":    {[]http.HandlerFunc{to(308, renamed)}, true, ""},
		"renamed twice":                {[]http.HandlerFunc{to(307, renamed), to(307, renamed)}, true, ""},
		"in circles":                   {[]http.HandlerFunc{to(307, renamed), to(307, renamed), to(307, renamed), to(307, renamed)}, false, "more than 3 redirects"},
		"without a place":              {[]http.HandlerFunc{to(307, "")}, false, "leads nowhere"},
		"to something else":            {[]http.HandlerFunc{to(307, "://")}, false, "leads nowhere"},
		"see other, which would GET":   {[]http.HandlerFunc{to(303, renamed)}, false, "nothing was created"},
		"to another host":              {[]http.HandlerFunc{to(307, "OTHER"+renamed)}, false, "the token is sent to"},
		"to another host, permanently": {[]http.HandlerFunc{to(301, "OTHER"+renamed)}, false, "the token is sent to"},
		"to another scheme":            {[]http.HandlerFunc{to(307, "https://HOST"+renamed)}, false, "a redirect to https://"},
		"with a password":              {[]http.HandlerFunc{to(307, "http://a:b@HOST"+renamed)}, false, "the token is sent to"},
	} {
		t.Run(name, func(t *testing.T) {
			other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("another host was asked, with %v", r.Header)
			}))
			defer other.Close()
			f := newForge(t)
			for _, a := range c.answers {
				f.answers(func(w http.ResponseWriter, r *http.Request) {
					a(rewriter{w, strings.NewReplacer("OTHER", other.URL, "HOST", f.Listener.Addr().String())}, r)
				})
			}
			err := clientOf(t, pushrun.GitHub, f.URL).Post(t.Context(), pushTo(pushrun.GitHub), Status{State: Success, Description: "d"})
			if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), c.say) {
				t.Fatal(err)
			}
			if c.ok {
				want := []told{{pushrun.GitHub, "owner/renamed", commit, "success", "d", "", ""}}
				if diff := cmp.Diff(want, f.all()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// rewriter fills in the addresses of servers in the header Location.
type rewriter struct {
	http.ResponseWriter
	names *strings.Replacer
}

func (w rewriter) WriteHeader(code int) {
	w.Header().Set("Location", w.names.Replace(w.Header().Get("Location")))
	w.ResponseWriter.WriteHeader(code)
}

func TestAForgeThatIsDownIsToldLater(t *testing.T) {
	f := newForge(t)
	f.Close()
	err := clientOf(t, pushrun.Gitea, f.URL).Post(t.Context(), pushTo(pushrun.Gitea), Status{State: Success})
	var later *LaterError
	if !errors.As(err, &later) || later.After != 0 {
		t.Error(err)
	}
}

func TestACertificateThatNobodyVouchesForIsRefused(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	err := clientOf(t, pushrun.Gitea, server.URL).Post(t.Context(), pushTo(pushrun.Gitea), Status{State: Success})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
}

func TestAddressesOfForges(t *testing.T) {
	for address, say := range map[string]string{
		"https://api.github.com":            "",
		"https://github.example.com/api/v3": "",
		"http://gitea.internal:3000":        "",
		"http://GITEA.internal:3000":        "",
		"http://gitea.internal":             "--insecure-http gitea.internal",
		"http://gitea.internal:3001":        "--insecure-http gitea.internal:3001",
		"https://user:pass@host":            "without user, password",
		"https://host?token=x":              "and query",
		"https://host#x":                    "and query",
		"ftp://host":                        "is not https://",
		"host":                              "is not https://",
		"https://":                          "is not https://",
		"":                                  "is not https://",
		"https://ho st":                     "is not https://",
	} {
		_, err := NewClient(pushrun.Gitea, address, "token", []string{"gitea.internal:3000"})
		if (err == nil) != (say == "") || err != nil && !strings.Contains(err.Error(), say) || err != nil && strings.Contains(err.Error(), "pass@") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestTokens(t *testing.T) {
	for name, c := range map[string]struct{ content, say string }{
		"as it is":             {secret, ""},
		"with a line break":    {secret + "\r\n", ""},
		"nothing":              {"", "there is no token"},
		"only blanks":          {" \n", "there is no token"},
		"two lines":            {secret + "\nX-Header: x", "write it as one line"},
		"a byte that is none":  {secret + "\x00x", "write it as one line"},
		"another alphabet":     {"töken-" + secret, "write it as one line"},
		"a whole other file":   {strings.Repeat(secret, 1000), "is it the right file?"},
		"base64 of a kubectl?": {secret + " " + secret, "write it as one line"},
	} {
		got, err := readToken(tokenFile(t, c.content))
		if (err == nil) != (c.say == "") || err != nil && (!strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && got.secret != secret {
			t.Errorf("%s: another token", name)
		}
	}
	if _, err := readToken(t.TempDir() + "/none"); !errors.Is(err, errNoToken) {
		t.Error(err)
	}
	if _, err := readToken(t.TempDir()); err == nil || errors.Is(err, errNoToken) {
		t.Error("a folder is a token")
	}
}

func TestATokenIsReadAnewForEachRequest(t *testing.T) {
	f := newForge(t)
	c := clientOf(t, pushrun.GitLab, f.URL)
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(c.tokenFile, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	post := func() error { return c.Post(t.Context(), pushTo(pushrun.GitLab), Status{State: Success}) }
	write("an-old-one")
	var refused *RefusedError
	if err := post(); !errors.As(err, &refused) || refused.Code != 401 {
		t.Fatal(err)
	}
	write(secret)
	if err := post(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.tokenFile); err != nil {
		t.Fatal(err)
	}
	if err := post(); !errors.Is(err, errNoToken) || f.requests() != 2 {
		t.Error(err)
	}
}

// A forge, or what stands in front of it, may repeat what it got.
func TestNoErrorRepeatsTheToken(t *testing.T) {
	for _, kind := range forges {
		for name, a := range map[string]http.HandlerFunc{
			"in a message":          says(403, `{"message": "the token `+secret+` may not"}`),
			"in a rate limit":       says(429, `{"message": "`+secret+`"}`),
			"in an error":           says(500, `{"error": {"token": "`+secret+`"}}`),
			"in a type":             says(404, `<html>`, "Content-Type", "text/"+secret),
			"in a redirect":         says(307, ``, "Location", "https://"+secret+".example.com/"),
			"in a redirect's path":  says(307, ``, "Location", "/"+secret),
			"in a place of nothing": says(307, ``, "Location", "%zz"+secret),
		} {
			f := newForge(t)
			f.answers(a)
			err := clientOf(t, kind, f.URL).Post(t.Context(), pushTo(kind), Status{State: Success})
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
		}
	}
	if out := fmt.Sprintf("%v %+v %#v %s", token{secret}, token{secret}, token{secret}, &token{secret}); strings.Contains(out, secret) {
		t.Error("a token prints")
	}
}

func TestAContextThatEndsEndsARequest(t *testing.T) {
	f := newForge(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.answers(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		cancel()
		<-r.Context().Done()
	})
	if err := clientOf(t, pushrun.GitHub, f.URL).Post(ctx, pushTo(pushrun.GitHub), Status{State: Success}); err == nil {
		t.Error("it went on")
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(403, "30", "0", "1764500000", `{"message": {"name": ["taken"]}}`, "text/html")
	f.Add(429, "Mon, 30 Nov 2026 12:00:00 GMT", "", "-1", `[`, "")
	f.Fuzz(func(t *testing.T, code int, retry, remaining, reset, body, contentType string) {
		h := http.Header{}
		h.Set("Retry-After", retry)
		h.Set("X-RateLimit-Remaining", remaining)
		h.Set("X-RateLimit-Reset", reset)
		if d, said := retryAfter(h, time.Unix(1764500000, 0)); said && (d < time.Second || d > time.Hour) {
			t.Errorf("wait %v", d)
		}
		message := messageOf([]byte(body), contentType)
		c := &Client{dialect: dialectOf(pushrun.GitLab), base: nil, now: time.Now}
		c.base, _ = parseBase("https://gitlab.example.com", nil)
		if err := c.judge(code, h, message); err != nil && strings.ContainsAny(err.Error(), "\n\r\x00") {
			t.Errorf("%q", err)
		}
	})
}
