package store

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestS3Conforms(t *testing.T) {
	conform(t, func(t *testing.T) (Store, func() Store) {
		_, srv := newFakeS3(t)
		again := func() Store { return openFake(t, srv) }
		return again(), again
	})
}

func TestS3ListsAllPages(t *testing.T) {
	fake, srv := newFakeS3(t)
	s := openFake(t, srv)
	for i := range 2500 {
		fake.objects[fmt.Sprintf("some/prefix/runs/%05d", i)] = fakeObject{etag: `"x"`, size: int64(i)}
	}
	fake.objects["some/prefix2/runs/x"] = fakeObject{}
	fake.objects["some/prefix/runs/folder/"] = fakeObject{} // a console's folder marker
	infos, err := s.List(t.Context(), "runs/")
	if err != nil || len(infos) != 2500 || infos[2499].Key != "runs/02499" || infos[2499].Size != 2499 {
		t.Fatalf("%d objects, %v", len(infos), err)
	}
	if n := fake.count("GET "); n != 3 {
		t.Errorf("%d requests, want 3 pages", n)
	}
}

// What each kind of answer means, for each verb.
func TestS3Answers(t *testing.T) {
	html := func(status int) func(http.ResponseWriter, *http.Request, string) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			fmt.Fprint(w, "<html><body>Please log in</body></html>")
			return true
		}
	}
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request, string) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			s3Error(w, status, code)
			return true
		}
	}
	for _, tc := range []struct {
		name  string
		fault func(http.ResponseWriter, *http.Request, string) bool
		want  error // nil: none of the sentinels
		say   string
	}{
		{"missing bucket", answer(404, "NoSuchBucket"), ErrNoBucket, "create it or correct its name"},
		{"denied", answer(403, "AccessDenied"), ErrDenied, "s3:ListBucket"},
		{"wrong secret", answer(403, "SignatureDoesNotMatch"), ErrDenied, "check the access key"},
		{"unknown key", answer(403, "InvalidAccessKeyId"), ErrDenied, "check the access key"},
		{"expired token", answer(400, "ExpiredToken"), ErrDenied, "check the access key"},
		{"internal error for ever", answer(500, "InternalError"), nil, "500"},
		{"slow down for ever", answer(503, "SlowDown"), nil, "503"},
		{"page of a proxy, 200", html(200), nil, ""},
		{"page of a proxy, 404", html(404), nil, ""},
		{"page of a proxy, 502", html(502), nil, ""},
		{"a 404 that is not about the key", answer(404, "NoSuchUpload"), nil, "NoSuchUpload"},
		{"wrong region", answer(301, "PermanentRedirect"), nil, "region"},
		{"connection closed", func(http.ResponseWriter, *http.Request, string) bool { panic(http.ErrAbortHandler) }, nil, "cannot be reached"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake, srv := newFakeS3(t)
			s := openFake(t, srv)
			mustPut(t, s, "k", []byte("body"))
			fake.fail(tc.fault)
			_, put := s.Put(t.Context(), "k", strings.NewReader("new"))
			_, create := s.PutIf(t.Context(), "k", []byte("new"), "")
			_, update := s.PutIf(t.Context(), "k", []byte("new"), `"etag"`)
			_, get := s.Get(t.Context(), "k", &bytes.Buffer{})
			_, stat := s.Stat(t.Context(), "k")
			_, list := s.List(t.Context(), "")
			for verb, err := range map[string]error{"put": put, "create": create, "update": update, "get": get, "stat": stat, "list": list} {
				if err == nil {
					t.Errorf("%s: no error", verb)
					continue
				}
				for _, sentinel := range []error{ErrNotFound, ErrNoBucket, ErrLost, ErrDenied} {
					if errors.Is(err, sentinel) != errors.Is(tc.want, sentinel) {
						t.Errorf("%s: is %q: %v: %v", verb, sentinel, errors.Is(err, sentinel), err)
					}
				}
				for _, part := range []string{srv.URL, `"models"`, "some/prefix/", tc.say} {
					if !strings.Contains(err.Error(), part) && !(verb == "list" && part == "NoSuchUpload") {
						t.Errorf("%s: %q is missing in: %v", verb, part, err)
					}
				}
				if strings.Contains(err.Error(), "test-secret-key") {
					t.Errorf("%s: tells the secret: %v", verb, err)
				}
			}
			fake.fail(nil)
			if body, _, err := ReadAll(t.Context(), s, "k", 100); err != nil || string(body) != "body" {
				t.Errorf("afterwards the object is %q, %v", body, err)
			}
		})
	}
}

func TestS3RetriesWhatMayPass(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(w http.ResponseWriter)
	}{
		{"500", func(w http.ResponseWriter) { s3Error(w, 500, "InternalError") }},
		{"503", func(w http.ResponseWriter) { s3Error(w, 503, "SlowDown") }},
		{"429", func(w http.ResponseWriter) { s3Error(w, 429, "TooManyRequests") }},
		{"closed connection", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake, srv := newFakeS3(t)
			s := openFake(t, srv)
			tries := map[string]int{}
			fake.fail(func(w http.ResponseWriter, r *http.Request, key string) bool {
				fake.mu.Lock()
				tries[r.Method+key]++
				n := tries[r.Method+key]
				fake.mu.Unlock()
				if n <= 2 { // three attempts are allowed
					tc.fail(w)
					return true
				}
				return false
			})
			mustPut(t, s, "k", []byte("body"))
			if body, _, err := ReadAll(t.Context(), s, "k", 100); err != nil || string(body) != "body" {
				t.Errorf("got %q, %v", body, err)
			}
			if infos, err := s.List(t.Context(), ""); err != nil || len(infos) != 1 {
				t.Errorf("got %v, %v", infos, err)
			}
		})
	}
}

func TestRetryerUsesTheListOfDelays(t *testing.T) {
	r := retryer{[]time.Duration{1, 20, 300}}
	if r.MaxAttempts() != 4 {
		t.Errorf("attempts %d", r.MaxAttempts())
	}
	for attempt, want := range map[int]time.Duration{1: 1, 2: 20, 3: 300} {
		if got, _ := r.RetryDelay(attempt, nil); got != want {
			t.Errorf("after attempt %d: %v, want %v", attempt, got, want)
		}
	}
	if n := (retryer{}).MaxAttempts(); n != 1 {
		t.Errorf("no delays: %d attempts", n)
	}
}

// A server that accepts the connection and then says nothing.
func TestS3Stall(t *testing.T) {
	fakeCredentials(t)
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" && !r.URL.Query().Has("list-type") { // half a body, then nothing
			w.Header().Set("ETag", `"e"`)
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, "half")
			w.(http.Flusher).Flush()
		}
		<-release
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(release) })
	s := openFake(t, srv, func(o *Options) { o.StallTimeout = 50 * time.Millisecond })
	_, stat := s.Stat(t.Context(), "k")
	_, put := s.Put(t.Context(), "k", strings.NewReader("x"))
	_, list := s.List(t.Context(), "")
	_, get := s.Get(t.Context(), "k", &bytes.Buffer{})
	for verb, err := range map[string]error{"stat": stat, "put": put, "list": list, "get": get} {
		if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestS3NoServer(t *testing.T) {
	_, srv := newFakeS3(t)
	s := openFake(t, srv)
	srv.Close()
	if _, err := s.Stat(t.Context(), "k"); err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), srv.URL) {
		t.Errorf("got %v", err)
	}
}

func TestS3NoCredentials(t *testing.T) {
	_, srv := newFakeS3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := Open(t.Context(), "s3://models", Options{Endpoint: srv.URL})
	if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v", err)
	}
}

func TestS3NeverPrintsSecrets(t *testing.T) {
	_, srv := newFakeS3(t)
	s := openFake(t, srv)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, s); got != "s3://models/some/prefix" {
			t.Errorf(format+" printed "+format, got)
		}
	}
	_, err := Open(t.Context(), "s3://models", Options{Endpoint: "http://user:hunter2@host"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	_, err = Open(t.Context(), "s3://user:hunter2@models", Options{})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://user:hunter2@host")
	_, err = Open(t.Context(), "s3://models", Options{})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestS3EndpointFromTheEnvironment(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Run(name, func(t *testing.T) {
			_, srv := newFakeS3(t)
			t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
			t.Setenv(name, srv.URL)
			s, err := Open(t.Context(), "s3://models", Options{Delays: []time.Duration{}})
			if err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, "k", []byte("x"))
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	fakeCredentials(t)
	for _, tc := range []struct {
		url, say string
		opts     Options
	}{
		{"/plain/path", "file:///dir", Options{}},
		{"file://relative/dir", "three slashes", Options{}},
		{"http://host/bucket", "s3://bucket", Options{}},
		{"s3:///prefix", "no bucket", Options{}},
		{"s3://b/../c", "object key", Options{}},
		{"s3://b?x=1", "query", Options{}},
		{"s3://b", "region", Options{}},
		{"s3://b", "path style", Options{PathStyle: "yes"}},
		{"s3://b", "checksum mode", Options{ChecksumMode: "always"}},
		{"s3://b", "part size 5", Options{PartSize: 5}},
		{"s3://b", "concurrency -1", Options{Concurrency: -1}},
		{"s3://b", "endpoint", Options{Endpoint: "localhost:9000"}},
		{"s3://b", "CA bundle", Options{CABundle: "/nonexistent"}},
	} {
		if _, err := Open(t.Context(), tc.url, tc.opts); err == nil || !strings.Contains(err.Error(), tc.say) {
			t.Errorf("%s %+v: got %v", tc.url, tc.opts, err)
		}
	}
}

// An answer's error is one short line: what is wrong and the id to ask the
// server's operator about.
func TestS3ErrorsAreBrief(t *testing.T) {
	fake, srv := newFakeS3(t)
	s := openFake(t, srv)
	fake.fail(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		w.Header().Set("X-Amz-Request-Id", "R1")
		w.Header().Set("X-Amz-Id-2", "host-id-of-no-use")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `<Error><Code>InvalidBucketName</Code><Message>The bucket
is not valid.</Message></Error>`)
		return true
	})
	_, err := s.List(t.Context(), "k")
	if err == nil || !strings.HasSuffix(err.Error(), ": InvalidBucketName: The bucket is not valid (status 400, request R1)") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q", err)
	}
	if httpStatus(err) != http.StatusBadRequest {
		t.Error("the error does not wrap the answer any more")
	}
}
