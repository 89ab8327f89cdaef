package store

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

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
