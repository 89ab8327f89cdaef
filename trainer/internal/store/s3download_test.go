package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// breakOff sends the headers of an object and only n bytes of what was asked.
func breakOff(fake *fakeS3, w http.ResponseWriter, r *http.Request, key string, n int) {
	rec := httptest.NewRecorder()
	fake.get(rec, r, key)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes()[:min(n, rec.Body.Len())])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func TestS3ContinuesABrokenDownload(t *testing.T) {
	fake, srv := newFakeS3(t)
	var slept []time.Duration
	s := openFake(t, srv, func(o *Options) {
		o.Delays = []time.Duration{1, 2, 3}
		o.Sleep = func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }
	})
	data := noise(1 << 20)
	mustPut(t, s, "k", data)
	var ranges []string
	fake.fail(func(w http.ResponseWriter, r *http.Request, key string) bool {
		ranges = append(ranges, r.Header.Get("Range")+" "+r.Header.Get("If-Match"))
		if len(ranges) <= 3 {
			breakOff(fake, w, r, key, 100_000)
		}
		return false
	})
	var got bytes.Buffer
	info, err := s.Get(t.Context(), "k", &got)
	if err != nil || !bytes.Equal(got.Bytes(), data) || info.SHA256 != sha(data) {
		t.Fatalf("%d bytes, %+v, %v", got.Len(), info, err)
	}
	want := []string{" ", "bytes=100000- " + info.ETag, "bytes=200000- " + info.ETag, "bytes=300000- " + info.ETag}
	if !slices.Equal(ranges, want) {
		t.Errorf("asked for %q, want %q", ranges, want)
	}
	if !slices.Equal(slept, []time.Duration{1, 2, 3}) {
		t.Errorf("slept %v", slept)
	}
}

func TestS3BrokenDownloads(t *testing.T) {
	data := noise(300_000)
	for _, tc := range []struct {
		name  string
		fault func(fake *fakeS3, n int32, w http.ResponseWriter, r *http.Request, key string) bool
		want  error // nil: succeeds
		say   string
	}{
		{"always truncated", func(f *fakeS3, _ int32, w http.ResponseWriter, r *http.Request, key string) bool {
			breakOff(f, w, r, key, 10)
			return true
		}, io.ErrUnexpectedEOF, "of 300000 bytes"},
		{"replaced in between", func(f *fakeS3, n int32, w http.ResponseWriter, r *http.Request, key string) bool {
			if n == 1 {
				defer f.set(key, fakeObject{body: noise(300_000), size: 300_000, etag: `"other"`})
				breakOff(f, w, r, key, 1000)
			}
			return false
		}, ErrIntegrity, "replaced"},
		{"server ignores the range", func(f *fakeS3, n int32, w http.ResponseWriter, r *http.Request, key string) bool {
			if n == 1 {
				breakOff(f, w, r, key, 1000)
			}
			r.Header.Del("Range")
			return false
		}, nil, ""},
		{"server answers another range", func(f *fakeS3, n int32, w http.ResponseWriter, r *http.Request, key string) bool {
			if n == 1 {
				breakOff(f, w, r, key, 1000)
			}
			r.Header.Set("Range", "bytes=5-")
			return false
		}, ErrIntegrity, "bytes from 1000"},
		{"damaged body", func(f *fakeS3, _ int32, w http.ResponseWriter, r *http.Request, key string) bool {
			o := f.object(key)
			o.body = bytes.Clone(o.body)
			o.body[1234] ^= 1
			f.set(key, o)
			return false
		}, ErrIntegrity, "recorded " + sha(data)},
		{"body cut off cleanly", func(f *fakeS3, _ int32, w http.ResponseWriter, r *http.Request, key string) bool {
			o := f.object(key)
			o.body, o.size = o.body[:500], 500
			f.set(key, o)
			return false
		}, ErrIntegrity, "downloaded 500 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake, srv := newFakeS3(t)
			s := openFake(t, srv)
			mustPut(t, s, "k", data)
			var n atomic.Int32
			fake.fail(func(w http.ResponseWriter, r *http.Request, key string) bool {
				return tc.fault(fake, n.Add(1), w, r, key)
			})
			out := filepath.Join(t.TempDir(), "out")
			_, err := Download(t.Context(), s, "k", out)
			got, readErr := os.ReadFile(out)
			if tc.want == nil {
				if err != nil || !bytes.Equal(got, data) {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
				return
			}
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.say) {
				t.Errorf("got %v", err)
			}
			if !errors.Is(readErr, os.ErrNotExist) {
				t.Errorf("a file of %d bytes was left", len(got))
			}
		})
	}
}

// An object that another program uploaded has no digest on record.
func TestS3ForeignObject(t *testing.T) {
	fake, srv := newFakeS3(t)
	fake.objects["some/prefix/corpus.txt"] = fakeObject{body: []byte("text"), size: 4, etag: `"e"`}
	s := openFake(t, srv)
	stat, err := s.Stat(t.Context(), "corpus.txt")
	if err != nil || stat.SHA256 != "" || stat.Size != 4 {
		t.Errorf("stat %+v, %v", stat, err)
	}
	if _, info, err := ReadAll(t.Context(), s, "corpus.txt", 10); err != nil || info.SHA256 != sha([]byte("text")) {
		t.Errorf("get %+v, %v", info, err)
	}
}
