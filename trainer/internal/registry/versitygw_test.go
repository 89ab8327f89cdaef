//go:build versitygw

// This test needs a real S3 server: `make store-test`.

package registry

import (
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/store/storetest"
)

func TestVersitygwConcurrentPromotes(t *testing.T) {
	endpoint := storetest.StartVersitygw(t)
	testConcurrentPromotes(t, func(t *testing.T) (*Registry, store.Store) {
		s, err := store.Open(t.Context(), "s3://"+storetest.Bucket+"/team", store.Options{Endpoint: endpoint})
		if err != nil {
			t.Fatal(err)
		}
		return New(s, Options{Now: fixed}), s
	}, 100)
}
