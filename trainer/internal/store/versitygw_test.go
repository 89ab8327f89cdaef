//go:build versitygw

// These tests need a real S3 server: `make store-test`.

package store

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/store/storetest"
)

func TestVersitygwConforms(t *testing.T) {
	endpoint := storetest.StartVersitygw(t)
	n := 0
	conform(t, func(t *testing.T) (Store, func() Store) {
		n++
		url := fmt.Sprintf("s3://%s/case-%d", storetest.Bucket, n)
		again := func() Store {
			s, err := Open(t.Context(), url, Options{Endpoint: endpoint})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		return again(), again
	})
}

func TestVersitygwMultipart(t *testing.T) {
	endpoint := storetest.StartVersitygw(t)
	for _, mode := range []string{"when_required", "when_supported"} {
		s, err := Open(t.Context(), "s3://"+storetest.Bucket, Options{Endpoint: endpoint, ChecksumMode: mode, Concurrency: 3})
		if err != nil {
			t.Fatal(err)
		}
		data := noise(64 << 20)
		put := mustPut(t, s, "large/"+mode, data)
		var got bytes.Buffer
		info, err := s.Get(t.Context(), "large/"+mode, &got)
		if err != nil || info != put || info.SHA256 != sha(data) || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%s: put %+v, got %+v, %v", mode, put, info, err)
		}
	}
}

func TestVersitygwPages(t *testing.T) {
	endpoint := storetest.StartVersitygw(t)
	s, err := Open(t.Context(), "s3://"+storetest.Bucket+"/p", Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1100 {
		mustPut(t, s, fmt.Sprintf("k/%04d", i), nil)
	}
	if infos, err := s.List(t.Context(), "k/"); err != nil || len(infos) != 1100 {
		t.Errorf("%d objects, %v", len(infos), err)
	}
}

func TestVersitygwRefusals(t *testing.T) {
	endpoint := storetest.StartVersitygw(t)
	s, err := Open(t.Context(), "s3://no-such-bucket", Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, ErrNoBucket) || errors.Is(err, ErrNotFound) {
		t.Errorf("missing bucket: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	s, err = Open(t.Context(), "s3://"+storetest.Bucket, Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, ErrDenied) {
		t.Errorf("wrong secret: %v", err)
	}
	if _, err := s.Put(t.Context(), "k", bytes.NewReader(nil)); !errors.Is(err, ErrDenied) {
		t.Errorf("wrong secret: %v", err)
	}
}
