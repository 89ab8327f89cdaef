package store

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
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

func TestS3UploadsAreChecked(t *testing.T) {
	for _, tc := range []struct {
		name   string
		tamper func(o *fakeObject)
		say    string
	}{
		{"empty object, as of a results limit", func(o *fakeObject) { o.body, o.size = nil, 0 }, "the server has 0 bytes"},
		{"metadata dropped", func(o *fakeObject) { o.meta = nil }, "x-amz-meta"},
		{"wrong digest recorded", func(o *fakeObject) { o.meta.Set("X-Amz-Meta-Sha256", sha(nil)) }, sha(nil)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake, srv := newFakeS3(t)
			fake.tamper = func(_ string, o *fakeObject) { tc.tamper(o) }
			s := openFake(t, srv)
			_, single := s.Put(t.Context(), "k", strings.NewReader("hello"))
			_, multi := s.Put(t.Context(), "k", bytes.NewReader(noise(9<<20)))
			_, cond := s.PutIf(t.Context(), "k2", []byte("hello"), "")
			for verb, err := range map[string]error{"put": single, "multipart": multi, "putif": cond} {
				if !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), tc.say) {
					t.Errorf("%s: %v", verb, err)
				}
			}
		})
	}
}

// changing gives other bytes when it is read the second time.
type changing struct {
	*bytes.Reader
	seeks int
}

func (c *changing) Seek(off int64, whence int) (int64, error) {
	if c.seeks++; c.seeks == 2 {
		c.Reader = bytes.NewReader([]byte("changed"))
	}
	return c.Reader.Seek(off, whence)
}

func TestS3SourceThatChanges(t *testing.T) {
	_, srv := newFakeS3(t)
	_, err := openFake(t, srv).Put(t.Context(), "k", &changing{Reader: bytes.NewReader([]byte("original"))})
	if !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), "source changed") {
		t.Errorf("got %v", err)
	}
}

func TestS3FailedMultipartUploadLeavesNothing(t *testing.T) {
	fake, srv := newFakeS3(t)
	s := openFake(t, srv)
	fake.fail(func(w http.ResponseWriter, r *http.Request, _ string) bool {
		if r.URL.Query().Get("partNumber") == "3" {
			s3Error(w, 500, "InternalError")
			return true
		}
		return false
	})
	if _, err := s.Put(t.Context(), "k", bytes.NewReader(noise(30<<20))); err == nil {
		t.Fatal("no error")
	}
	if len(fake.uploads) != 0 || len(fake.objects) != 0 {
		t.Errorf("left: uploads %v, objects %d", fake.uploads, len(fake.objects))
	}
}

func TestS3UploadWhoseAnswerIsLost(t *testing.T) {
	fake, srv := newFakeS3(t)
	s := openFake(t, srv)
	fake.fail(func(w http.ResponseWriter, r *http.Request, key string) bool {
		if r.Method == "PUT" || r.Method == "POST" && r.URL.Query().Has("uploadId") {
			fake.fail(nil)
			r2 := r.Clone(r.Context())
			fake.ServeHTTP(httptest.NewRecorder(), r2)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	mustPut(t, s, "small", []byte("x"))
	fake.fail(func(w http.ResponseWriter, r *http.Request, key string) bool {
		if r.Method == "POST" && r.URL.Query().Has("uploadId") {
			fake.fail(nil)
			fake.ServeHTTP(httptest.NewRecorder(), r.Clone(r.Context()))
			panic(http.ErrAbortHandler)
		}
		return false
	})
	mustPut(t, s, "large", noise(20<<20))
}

// startTLS serves the fake over TLS and returns the certificate's file.
func startTLS(t *testing.T) (*fakeS3, *httptest.Server, string) {
	t.Helper()
	fake, _ := newFakeS3(t)
	srv := httptest.NewUnstartedServer(fake)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(bundle, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return fake, srv, bundle
}

// A server that does not know aws-chunked bodies with a checksum trailer
// (aws/aws-sdk-go-v2#3469, rqlite/rqlite#2701, minio/minio#20845). The fake
// also refuses an unsigned payload, so a success says that the server could
// check the body.
func TestS3ServerWithoutTrailers(t *testing.T) {
	for _, size := range []int{10, 20 << 20} {
		_, srv, bundle := startTLS(t)
		s := openFake(t, srv, func(o *Options) { o.CABundle = bundle })
		mustPut(t, s, "k", noise(size))
		if _, err := s.PutIf(t.Context(), "p", []byte("x"), ""); err != nil {
			t.Error(err)
		}
		s = openFake(t, srv, func(o *Options) { o.CABundle, o.ChecksumMode = bundle, "when_supported" })
		_, err := s.Put(t.Context(), "k", bytes.NewReader(noise(size)))
		if err == nil || !strings.Contains(err.Error(), "set the checksum mode to when_required") {
			t.Errorf("size %d with trailers: %v", size, err)
		}
	}
}

func TestS3CABundle(t *testing.T) {
	_, srv, bundle := startTLS(t)
	_, err := openFake(t, srv).Stat(t.Context(), "k")
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the bundle: %v", err)
	}
	t.Setenv("AWS_CA_BUNDLE", bundle)
	mustPut(t, openFake(t, srv), "k", []byte("x"))
}

// generated is a large source that is never in memory.
type generated struct{ size, at int64 }

func (g *generated) Read(p []byte) (int, error) {
	if g.at >= g.size {
		return 0, io.EOF
	}
	n := min(int64(len(p)), g.size-g.at)
	clear(p[:n])
	g.at += n
	return int(n), nil
}

func (g *generated) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += g.at
	case io.SeekEnd:
		off += g.size
	}
	g.at = off
	return off, nil
}

// heapWatch samples the heap on every call and keeps the largest.
type heapWatch struct{ peak uint64 }

func (h *heapWatch) sample() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.peak = max(h.peak, m.HeapAlloc)
}

func (h *heapWatch) Write(p []byte) (int, error) {
	h.sample()
	return len(p), nil
}

func TestS3ConstantMemory(t *testing.T) {
	const size, bound = 256 << 20, 100 << 20
	fake, srv := newFakeS3(t)
	fake.forget = true
	s := openFake(t, srv)
	runtime.GC()
	watch := &heapWatch{}
	fake.fail(func(http.ResponseWriter, *http.Request, string) bool {
		fake.mu.Lock()
		watch.sample()
		fake.mu.Unlock()
		return false
	})
	info, err := s.Put(t.Context(), "large", &generated{size: size})
	if err != nil || info.Size != size {
		t.Fatalf("%+v, %v", info, err)
	}
	got, err := s.Get(t.Context(), "large", watch)
	if err != nil || got != info {
		t.Fatalf("%+v, %v", got, err)
	}
	if watch.peak > bound {
		t.Errorf("the heap grew to %d MiB for an object of %d MiB", watch.peak>>20, size>>20)
	}
	if n := fake.count("PUT "); n != size/defaultPartSize {
		t.Errorf("%d parts", n)
	}
}

func TestS3LostRaces(t *testing.T) {
	for _, status := range []int{304, 409, 412} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			fake, srv := newFakeS3(t)
			fake.lostStatus = status
			s := openFake(t, srv)
			one, err := s.PutIf(t.Context(), "p", []byte("1"), "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.PutIf(t.Context(), "p", []byte("2"), ""); !errors.Is(err, ErrLost) {
				t.Errorf("create: %v", err)
			}
			// Another writer comes between the look and the write.
			fake.fail(func(_ http.ResponseWriter, r *http.Request, key string) bool {
				if r.Method == "PUT" {
					fake.set(key, fakeObject{etag: `"theirs"`, body: []byte("theirs"), size: 6})
				}
				return false
			})
			if _, err := s.PutIf(t.Context(), "p", []byte("3"), one.ETag); !errors.Is(err, ErrLost) {
				t.Errorf("update: %v", err)
			}
			if string(fake.object("some/prefix/p").body) != "theirs" {
				t.Error("the winner's object was overwritten")
			}
		})
	}
}

// minio/minio#21526: If-Match on a missing key was accepted.
func TestS3IfMatchOnAMissingKey(t *testing.T) {
	fake, srv := newFakeS3(t)
	fake.ifMatchOnMissing = true
	if _, err := openFake(t, srv).PutIf(t.Context(), "p", []byte("x"), `"old"`); !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
	if len(fake.objects) != 0 {
		t.Error("the object was created")
	}
}

func TestS3ServerThatIgnoresConditions(t *testing.T) {
	fake, srv := newFakeS3(t)
	fake.ignoreConditions = true
	s := openFake(t, srv)
	if _, err := s.PutIf(t.Context(), "p", []byte("x"), ""); !errors.Is(err, ErrUnconditional) {
		t.Errorf("create: %v", err)
	}
	info := mustPut(t, s, "q", []byte("1"))
	if _, err := s.PutIf(t.Context(), "q", []byte("2"), info.ETag); !errors.Is(err, ErrUnconditional) {
		t.Errorf("update: %v", err)
	}
}

// The server stores the object, but the answer is lost; the retry meets 412.
// That writer has won and must hear it.
func TestS3ConditionalWriteWhoseAnswerIsLost(t *testing.T) {
	for _, failAll := range []bool{false, true} {
		fake, srv := newFakeS3(t)
		s := openFake(t, srv)
		first := true
		fake.fail(func(_ http.ResponseWriter, r *http.Request, key string) bool {
			if r.Method != "PUT" {
				return false
			}
			if first {
				first = false
				fake.put(httptest.NewRecorder(), r, key)
				panic(http.ErrAbortHandler)
			}
			if failAll {
				panic(http.ErrAbortHandler)
			}
			return false
		})
		info, err := s.PutIf(t.Context(), "p", []byte("x"), "")
		if err != nil || info.SHA256 != sha([]byte("x")) {
			t.Errorf("all attempts fail %v: %+v, %v", failAll, info, err)
		}
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
