package store

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeS3 is an S3 server in memory with one bucket, "models". It implements
// what the store uses, strictly, and can be told to fail.
type fakeS3 struct {
	mu       sync.Mutex
	objects  map[string]fakeObject
	uploads  map[string]*fakeUpload
	requests []string // "METHOD key"

	// fault may answer a request itself; it returns true if it did. Set it
	// with fail.
	fault faultFunc
	// tamper changes what is about to be stored.
	tamper func(key string, o *fakeObject)
	// forget keeps sizes and digests only, for large objects.
	forget bool
	// lostStatus is what a lost race is answered with; 0 means 412.
	lostStatus int
	// ignoreConditions, ifMatchOnMissing: faults of real servers.
	ignoreConditions, ifMatchOnMissing bool
}

type faultFunc = func(w http.ResponseWriter, r *http.Request, key string) bool

// fail sets the fault; nil ends it.
func (f *fakeS3) fail(fault faultFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

type fakeObject struct {
	body []byte
	size int64
	etag string
	meta http.Header
}

type fakeUpload struct {
	key   string
	meta  http.Header
	parts map[int]fakeObject
}

// newFakeS3 starts the server and sets credentials in the environment.
func newFakeS3(t *testing.T) (*fakeS3, *httptest.Server) {
	t.Helper()
	f := &fakeS3{objects: map[string]fakeObject{}, uploads: map[string]*fakeUpload{}}
	srv := httptest.NewUnstartedServer(f)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // broken connections are wanted
	srv.Start()
	t.Cleanup(srv.Close)
	fakeCredentials(t)
	return f, srv
}

func fakeCredentials(t *testing.T) {
	t.Helper()
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test-access", "AWS_SECRET_ACCESS_KEY": "test-secret-key", "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "",
		"AWS_REQUEST_CHECKSUM_CALCULATION": "", "AWS_RESPONSE_CHECKSUM_VALIDATION": "", "AWS_CA_BUNDLE": "",
	} {
		t.Setenv(k, v)
	}
}

// openFake opens a store on the server, with three attempts and no waiting.
func openFake(t *testing.T, srv *httptest.Server, change ...func(*Options)) Store {
	t.Helper()
	o := Options{Endpoint: srv.URL, Delays: []time.Duration{0, 0}}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(t.Context(), "s3://models/some/prefix", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func s3Error(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>fake says %s</Message></Error>", code, code)
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+key)
	fault := f.fault
	f.mu.Unlock()
	if fault != nil && fault(w, r, key) {
		return
	}
	if bucket != "models" {
		s3Error(w, 404, "NoSuchBucket")
		return
	}
	q := r.URL.Query()
	switch {
	case r.Method == "GET" && key == "":
		f.list(w, r)
	case r.Method == "GET" || r.Method == "HEAD":
		f.get(w, r, key)
	case r.Method == "PUT":
		f.put(w, r, key)
	case r.Method == "POST" && q.Has("uploads"):
		f.mu.Lock()
		id := fmt.Sprint("upload-", len(f.requests))
		f.uploads[id] = &fakeUpload{key: key, meta: metaOf(r), parts: map[int]fakeObject{}}
		f.mu.Unlock()
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><Bucket>models</Bucket><Key>%s</Key><UploadId>%s</UploadId></InitiateMultipartUploadResult>", key, id)
	case r.Method == "POST" && q.Has("uploadId"):
		f.complete(w, key, q.Get("uploadId"))
	case r.Method == "DELETE" && q.Has("uploadId"):
		f.mu.Lock()
		delete(f.uploads, q.Get("uploadId"))
		f.mu.Unlock()
		w.WriteHeader(204)
	default:
		s3Error(w, 405, "MethodNotAllowed")
	}
}

func metaOf(r *http.Request) http.Header {
	meta := http.Header{}
	for k, v := range r.Header {
		if strings.HasPrefix(k, "X-Amz-Meta-") {
			meta[k] = v
		}
	}
	return meta
}

// receive reads a body as an old server does: no chunks, no trailers, and the
// digest of the signature must be that of the payload.
func (f *fakeS3) receive(w http.ResponseWriter, r *http.Request) (fakeObject, bool) {
	if strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") || r.Header.Get("X-Amz-Trailer") != "" {
		io.Copy(io.Discard, r.Body)
		s3Error(w, 501, "NotImplemented")
		return fakeObject{}, false
	}
	var buf bytes.Buffer
	sha, sum := sha256.New(), md5.New()
	to := io.MultiWriter(sha, sum, &buf)
	if f.forget {
		to = io.MultiWriter(sha, sum)
	}
	n, err := io.Copy(to, r.Body)
	if err != nil {
		return fakeObject{}, false
	}
	if claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed != hex.EncodeToString(sha.Sum(nil)) {
		s3Error(w, 400, "XAmzContentSHA256Mismatch")
		return fakeObject{}, false
	}
	return fakeObject{body: buf.Bytes(), size: n, etag: fmt.Sprintf(`"%x"`, sum.Sum(nil)), meta: metaOf(r)}, true
}

func (f *fakeS3) put(w http.ResponseWriter, r *http.Request, key string) {
	o, ok := f.receive(w, r)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := r.URL.Query().Get("uploadId"); id != "" {
		n, _ := strconv.Atoi(r.URL.Query().Get("partNumber"))
		up := f.uploads[id]
		if up == nil {
			s3Error(w, 404, "NoSuchUpload")
			return
		}
		up.parts[n] = o
		w.Header().Set("ETag", o.etag)
		return
	}
	old, exists := f.objects[key]
	if !f.ignoreConditions && !f.holds(r, old, exists) {
		status := f.lostStatus
		if status == 0 {
			status = 412
		}
		if status == 304 {
			w.WriteHeader(304)
			return
		}
		s3Error(w, status, map[int]string{412: "PreconditionFailed", 409: "ConditionalRequestConflict", 404: "NoSuchKey"}[status])
		return
	}
	if f.tamper != nil {
		f.tamper(key, &o)
	}
	f.objects[key] = o
	w.Header().Set("ETag", o.etag)
}

func (f *fakeS3) holds(r *http.Request, old fakeObject, exists bool) bool {
	if r.Header.Get("If-None-Match") == "*" {
		return !exists
	}
	if want := r.Header.Get("If-Match"); want != "" {
		if !exists {
			return f.ifMatchOnMissing
		}
		return old.etag == want
	}
	return true
}

func (f *fakeS3) complete(w http.ResponseWriter, key, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	up := f.uploads[id]
	if up == nil {
		s3Error(w, 404, "NoSuchUpload")
		return
	}
	o := fakeObject{etag: fmt.Sprintf(`"multipart-%d"`, len(f.requests)), meta: up.meta}
	for n := 1; n <= len(up.parts); n++ {
		p, ok := up.parts[n]
		if !ok {
			s3Error(w, 400, "InvalidPart")
			return
		}
		o.body = append(o.body, p.body...)
		o.size += p.size
	}
	if f.tamper != nil {
		f.tamper(key, &o)
	}
	f.objects[key] = o
	delete(f.uploads, id)
	fmt.Fprintf(w, "<CompleteMultipartUploadResult><Bucket>models</Bucket><Key>%s</Key><ETag>%s</ETag></CompleteMultipartUploadResult>", key, strings.ReplaceAll(o.etag, `"`, "&quot;"))
}

func (f *fakeS3) get(w http.ResponseWriter, r *http.Request, key string) {
	f.mu.Lock()
	o, ok := f.objects[key]
	f.mu.Unlock()
	if !ok {
		if r.Method == "HEAD" {
			w.WriteHeader(404)
			return
		}
		s3Error(w, 404, "NoSuchKey")
		return
	}
	for k, v := range o.meta {
		w.Header()[k] = v
	}
	w.Header().Set("ETag", o.etag)
	if want := r.Header.Get("If-Match"); want != "" && want != o.etag {
		s3Error(w, 412, "PreconditionFailed")
		return
	}
	start := int64(0)
	if rng := r.Header.Get("Range"); rng != "" {
		fmt.Sscanf(rng, "bytes=%d-", &start)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, o.size-1, o.size))
	}
	w.Header().Set("Content-Length", fmt.Sprint(o.size-start))
	if start > 0 {
		w.WriteHeader(206)
	}
	if r.Method == "HEAD" {
		return
	}
	if f.forget {
		io.CopyN(w, zeros{}, o.size-start)
		return
	}
	w.Write(o.body[start:])
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func (f *fakeS3) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	var keys []string
	for k := range f.objects {
		if strings.HasPrefix(k, q.Get("prefix")) && k > q.Get("continuation-token") {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	type content struct {
		Key  string
		Size int64
		ETag string
	}
	out := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Name                  string
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []content
	}{Name: "models"}
	for _, k := range keys[:min(len(keys), 1000)] {
		out.Contents = append(out.Contents, content{k, f.objects[k].size, f.objects[k].etag})
	}
	if len(keys) > 1000 {
		out.IsTruncated, out.NextContinuationToken = true, keys[999]
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(out)
}

func (f *fakeS3) set(key string, o fakeObject) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[key] = o
}

func (f *fakeS3) object(key string) fakeObject {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[key]
}

// count says how many requests of a kind came.
func (f *fakeS3) count(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}
