package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// sha is the digest that a store must report for data.
func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// noise is n bytes that no two parts of an upload share.
func noise(n int) []byte {
	out := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(out)
	return out
}

func mustPut(t *testing.T, s Store, key string, data []byte) Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// conform is what every store must do. open returns a new empty store; again
// opens the same place once more, as another process would.
func conform(t *testing.T, open func(t *testing.T) (s Store, again func() Store)) {
	t.Run("a put object can be read, described and listed", func(t *testing.T) {
		s, again := open(t)
		for _, n := range []int{0, 1, 1000, 1<<20 + 1, 11 << 20} {
			key, data := fmt.Sprintf("runs/r1/size-%d.bin", n), noise(n)
			put := mustPut(t, s, key, data)
			for _, s := range []Store{s, again()} {
				var got bytes.Buffer
				read, err := s.Get(t.Context(), key, &got)
				if err != nil {
					t.Fatal(err)
				}
				stat, err := s.Stat(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				want := Info{Key: key, Size: int64(n), SHA256: sha(data), ETag: put.ETag}
				if put.ETag == "" || put != want || read != want || stat != want {
					t.Errorf("size %d:\nput  %+v\nread %+v\nstat %+v\nwant %+v", n, put, read, stat, want)
				}
				if !bytes.Equal(got.Bytes(), data) {
					t.Errorf("size %d: read other bytes than were put", n)
				}
			}
		}
	})

	t.Run("put reads its source from the start and replaces", func(t *testing.T) {
		s, _ := open(t)
		first := mustPut(t, s, "a", []byte("first"))
		r := bytes.NewReader([]byte("second"))
		r.ReadByte()
		second, err := s.Put(t.Context(), "a", r)
		if err != nil || second.SHA256 != sha([]byte("second")) || second.ETag == first.ETag {
			t.Fatalf("got %+v, %v", second, err)
		}
		body, _, err := ReadAll(t.Context(), s, "a", 100)
		if err != nil || string(body) != "second" {
			t.Fatalf("got %q, %v", body, err)
		}
	})

	t.Run("what is missing is not found, a folder too", func(t *testing.T) {
		s, _ := open(t)
		mustPut(t, s, "models/demo/config.json", []byte("{}"))
		for _, key := range []string{"no", "models", "models/demo", "models/demo/config.json/x", "models/demo/config"} {
			if _, err := s.Stat(t.Context(), key); !errors.Is(err, ErrNotFound) {
				t.Errorf("stat %s: got %v", key, err)
			}
			if _, err := s.Get(t.Context(), key, &bytes.Buffer{}); !errors.Is(err, ErrNotFound) {
				t.Errorf("get %s: got %v", key, err)
			}
		}
	})

	t.Run("keys that leave the store are refused", func(t *testing.T) {
		s, _ := open(t)
		for _, key := range []string{"", ".", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "a/./b", "a\x00b", `a\b`, "\xff", ".trainyard/lock", strings.Repeat("a/", 500) + "a", strings.Repeat("a", 201)} {
			_, put := s.Put(t.Context(), key, bytes.NewReader(nil))
			_, putIf := s.PutIf(t.Context(), key, nil, "")
			_, get := s.Get(t.Context(), key, &bytes.Buffer{})
			_, stat := s.Stat(t.Context(), key)
			for verb, err := range map[string]error{"put": put, "putif": putIf, "get": get, "stat": stat} {
				if err == nil || errors.Is(err, ErrNotFound) {
					t.Errorf("%s %.40q: got %v", verb, key, err)
				}
			}
		}
		if _, err := s.List(t.Context(), "../"); err == nil {
			t.Error("list ../ was accepted")
		}
	})

	t.Run("list is by prefix, relative and sorted", func(t *testing.T) {
		s, _ := open(t)
		for _, k := range []string{"b/2", "b/1", "b.txt", "b/1/x", "a", "bb/1", "b-1"} {
			if strings.HasPrefix(k, "b/1/") {
				k = "b/10/x" // a file store cannot have b/1 and b/1/x
			}
			mustPut(t, s, k, []byte(k))
		}
		for prefix, want := range map[string]string{
			"":     "a b-1 b.txt b/1 b/10/x b/2 bb/1",
			"b/":   "b/1 b/10/x b/2",
			"b":    "b-1 b.txt b/1 b/10/x b/2 bb/1",
			"b/1":  "b/1 b/10/x",
			"none": "", "none/": "", "a/": "",
		} {
			infos, err := s.List(t.Context(), prefix)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range infos {
				got = append(got, i.Key)
				if i.Size != int64(len(i.Key)) {
					t.Errorf("%s: size %d", i.Key, i.Size)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("list %q: got %q, want %q", prefix, got, want)
			}
		}
	})

	t.Run("a conditional write needs the state it names", func(t *testing.T) {
		s, again := open(t)
		if _, err := s.PutIf(t.Context(), "p", []byte("0"), `"0123456789abcdef0123456789abcdef"`); !errors.Is(err, ErrLost) {
			t.Fatalf("update of a missing object: got %v", err)
		}
		one, err := s.PutIf(t.Context(), "p", []byte("1"), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again().PutIf(t.Context(), "p", []byte("1"), ""); !errors.Is(err, ErrLost) {
			t.Fatalf("second create: got %v", err)
		}
		two, err := again().PutIf(t.Context(), "p", []byte("2"), one.ETag)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutIf(t.Context(), "p", []byte("3"), one.ETag); !errors.Is(err, ErrLost) {
			t.Fatalf("update of an old state: got %v", err)
		}
		stat, err := s.Stat(t.Context(), "p")
		if err != nil || stat != two || two.SHA256 != sha([]byte("2")) {
			t.Fatalf("got %+v, %v, want %+v", stat, err, two)
		}
	})

	t.Run("50 writers at once have one winner", func(t *testing.T) {
		s, again := open(t)
		prev := ""
		for _, round := range []string{"create", "update", "update again"} {
			won := race(t, 50, again, prev)
			body, info, err := ReadAll(t.Context(), s, "pointer", 100)
			if err != nil || string(body) != won {
				t.Fatalf("%s: %q won, but the object says %q (%v)", round, won, body, err)
			}
			prev = info.ETag
		}
	})

	t.Run("a cancelled context ends the work", func(t *testing.T) {
		s, _ := open(t)
		mustPut(t, s, "a", []byte("x"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Put(ctx, "b", bytes.NewReader([]byte("x"))); !errors.Is(err, context.Canceled) {
			t.Errorf("put: %v", err)
		}
		if _, err := s.Get(ctx, "a", &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
			t.Errorf("get: %v", err)
		}
		if _, err := s.Stat(t.Context(), "b"); !errors.Is(err, ErrNotFound) {
			t.Errorf("after the cancelled put: %v", err)
		}
	})

	t.Run("files go up and come down", func(t *testing.T) {
		s, _ := open(t)
		dir := t.TempDir()
		data := noise(3 << 20)
		if err := os.WriteFile(filepath.Join(dir, "in"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Upload(t.Context(), s, filepath.Join(dir, "in"), "k"); err != nil {
			t.Fatal(err)
		}
		if _, err := Download(t.Context(), s, "k", filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "out"))
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
		if _, err := Download(t.Context(), s, "missing", filepath.Join(dir, "none")); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if _, _, err := ReadAll(t.Context(), s, "k", 1000); !errors.Is(err, errTooLarge) {
			t.Errorf("read all of a large object: got %v", err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 2 {
			t.Errorf("left over: %v", entries)
		}
	})

	t.Run("its URL opens it again", func(t *testing.T) {
		s, again := open(t)
		if again().URL() != s.URL() || !strings.Contains(s.URL(), "://") {
			t.Errorf("got %s and %s", s.URL(), again().URL())
		}
	})
}

// race lets n stores write "pointer" over prev and returns what the one winner
// wrote.
func race(t *testing.T, n int, again func() Store, prev string) string {
	t.Helper()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		won   []string
		start = make(chan struct{})
	)
	for i := range n {
		s := again()
		wg.Go(func() {
			body := fmt.Sprintf("writer %d after %s", i, prev)
			<-start
			_, err := s.PutIf(t.Context(), "pointer", []byte(body), prev)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, body)
			} else if !errors.Is(err, ErrLost) {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	close(start)
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d winners: %q", len(won), won)
	}
	return won[0]
}
