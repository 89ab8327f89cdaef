package store

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

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
