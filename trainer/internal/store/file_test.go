package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func openDir(t *testing.T, dir string) *fileStore {
	t.Helper()
	s, err := openFile(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*fileStore)
}

func TestFileConforms(t *testing.T) {
	conform(t, func(t *testing.T) (Store, func() Store) {
		url, err := FileURL(filepath.Join(t.TempDir(), "a store 100%"))
		if err != nil {
			t.Fatal(err)
		}
		again := func() Store {
			s, err := Open(t.Context(), url, Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		return again(), again
	})
}

// A write that dies at any step leaves the old object or the new one, and the
// next write works.
func TestFileCrashAtEveryStep(t *testing.T) {
	died := errors.New("died")
	oldBody, newBody := []byte("the old object"), []byte("the new object, longer")
	for _, existing := range []string{"none", "recorded", "foreign"} {
		for _, verb := range []string{"put", "putif"} {
			for n := 1; ; n++ {
				name := fmt.Sprintf("%s over %s, step %d", verb, existing, n)
				dir := t.TempDir()
				s := openDir(t, dir)
				switch existing {
				case "recorded":
					mustPut(t, s, "m/k", oldBody)
				case "foreign":
					if err := errors.Join(os.Mkdir(filepath.Join(dir, "m"), 0o777), os.WriteFile(filepath.Join(dir, "m/k"), oldBody, 0o666)); err != nil {
						t.Fatal(err)
					}
				}
				etag := ""
				if existing != "none" {
					etag = sha(oldBody)
				}
				write := func(s Store) error {
					if verb == "put" {
						_, err := s.Put(t.Context(), "m/k", bytes.NewReader(newBody))
						return err
					}
					_, err := s.PutIf(t.Context(), "m/k", newBody, etag)
					return err
				}
				steps := 0
				s.crash = func(string) error {
					if steps++; steps == n {
						return died
					}
					return nil
				}
				err := write(s)
				if err == nil {
					if n < 4 {
						t.Fatalf("%s: only %d steps were seen", name, n-1)
					}
					break // all steps were tried
				}
				if !errors.Is(err, died) {
					t.Fatalf("%s: %v", name, err)
				}
				after := openDir(t, dir)
				body, info, err := ReadAll(t.Context(), after, "m/k", 1000)
				switch {
				case existing == "none" && errors.Is(err, ErrNotFound):
				case err != nil:
					t.Errorf("%s: afterwards %v", name, err)
				case !bytes.Equal(body, oldBody) && !bytes.Equal(body, newBody):
					t.Errorf("%s: half written: %q", name, body)
				}
				if stat, statErr := after.Stat(t.Context(), "m/k"); err == nil && (statErr != nil || stat != info) {
					t.Errorf("%s: stat %+v (%v), get %+v", name, stat, statErr, info)
				}
				if !bytes.Equal(body, newBody) {
					if err := write(after); err != nil {
						t.Errorf("%s: the next write: %v", name, err)
					}
				}
				if infos, err := after.List(t.Context(), ""); err != nil || len(infos) != 1 {
					t.Errorf("%s: list %v, %v", name, infos, err)
				}
			}
		}
	}
}

func TestFileDamageIsFound(t *testing.T) {
	large := noise(trustSize + 10)
	flipped := bytes.Clone(large)
	flipped[7] ^= 1
	for _, tc := range []struct {
		name     string
		put, now []byte
		statToo  bool
	}{
		{"truncated", []byte("hello world"), []byte("hello"), true},
		{"one bit in a small file", []byte("hello"), []byte("hellp"), true},
		{"truncated large file", large, large[:trustSize+5], true},
		{"one bit in a large file", large, flipped, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openDir(t, dir)
			mustPut(t, s, "k", tc.put)
			if err := os.WriteFile(filepath.Join(dir, "k"), tc.now, 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(t.Context(), "k", &bytes.Buffer{}); !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), sha(tc.put)) {
				t.Errorf("get: %v", err)
			}
			if _, err := s.Stat(t.Context(), "k"); errors.Is(err, ErrIntegrity) != tc.statToo {
				t.Errorf("stat: %v", err)
			}
			if _, err := s.PutIf(t.Context(), "k", []byte("x"), ""); err == nil {
				t.Error("a conditional write over a damaged object was accepted")
			}
			mustPut(t, s, "k", tc.put) // which repairs it
			if _, err := s.Get(t.Context(), "k", &bytes.Buffer{}); err != nil {
				t.Errorf("after the repair: %v", err)
			}
		})
	}
}

func TestFileDamagedRecord(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	mustPut(t, s, "k", []byte("x"))
	if err := os.WriteFile(filepath.Join(dir, recordPath("k")), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, ErrIntegrity) {
		t.Errorf("got %v", err)
	}
}

func TestFileSymlinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	s := openDir(t, dir)
	if err := errors.Join(
		os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "folder")),
		os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "direct")),
		os.Symlink("../"+filepath.Base(outside)+"/secret", filepath.Join(dir, "relative")),
	); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"folder/secret", "direct", "relative"} {
		var got bytes.Buffer
		if _, err := s.Get(t.Context(), key, &got); err == nil || got.Len() > 0 {
			t.Errorf("get %s: read %q, %v", key, got.String(), err)
		}
		if _, err := s.PutIf(t.Context(), key, []byte("mine"), ""); err == nil {
			t.Errorf("conditional put %s was accepted", key)
		}
	}
	if _, err := s.Put(t.Context(), "folder/new", bytes.NewReader(nil)); err == nil {
		t.Error("put through a symlink was accepted")
	}
	if got, _ := os.ReadFile(filepath.Join(outside, "secret")); string(got) != "secret" {
		t.Errorf("outside was changed to %q", got)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside has now %v", entries)
	}
}

func TestFileMissingDirectoryIsNotAnEmptyStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	if _, err := Open(t.Context(), "file://"+dir, Options{}); !errors.Is(err, ErrNoBucket) || errors.Is(err, ErrNotFound) {
		t.Errorf("open: %v", err)
	}
	s := openDir(t, dir)
	mustPut(t, s, "k", []byte("x"))
	if err := os.Rename(dir, dir+".gone"); err != nil { // as an unmount does
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		if again {
			if err := os.Mkdir(dir, 0o777); err != nil { // the empty mount point
				t.Fatal(err)
			}
		}
		if _, err := s.Stat(t.Context(), "other"); !errors.Is(err, ErrNoBucket) || errors.Is(err, ErrNotFound) {
			t.Errorf("stat: %v", err)
		}
		if _, err := s.List(t.Context(), ""); !errors.Is(err, ErrNoBucket) {
			t.Errorf("list: %v", err)
		}
		if _, err := s.Put(t.Context(), "new", bytes.NewReader(nil)); !errors.Is(err, ErrNoBucket) {
			t.Errorf("put: %v", err)
		}
	}
}

func TestFileObjectAndFolderOfOneName(t *testing.T) {
	s := openDir(t, t.TempDir())
	mustPut(t, s, "a/b", []byte("x"))
	if _, err := s.Put(t.Context(), "a", bytes.NewReader(nil)); err == nil || !strings.Contains(err.Error(), "folder of objects") {
		t.Errorf("put a: %v", err)
	}
	if _, err := s.Put(t.Context(), "a/b/c", bytes.NewReader(nil)); err == nil || !strings.Contains(err.Error(), "folder of objects") {
		t.Errorf("put a/b/c: %v", err)
	}
}

func TestFileModesAreOpenToTheGroup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	mustPut(t, openDir(t, dir), "m/k", []byte("x"))
	for p, want := range map[string]os.FileMode{"m": 0o775, "m/k": 0o664, ".trainyard/sums/m/k.json": 0o664, ".trainyard/lock": 0o664} {
		if st, err := os.Stat(filepath.Join(dir, p)); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", p, st.Mode(), err)
		}
	}
}

// TestFileProcesses lets real processes race, since flock also has to hold
// between them.
func TestFileProcesses(t *testing.T) {
	if dir := os.Getenv("STORE_RACE_DIR"); dir != "" {
		s := openDir(t, dir)
		for round := 0; round < 20; {
			body, info, err := ReadAll(t.Context(), s, "counter", 1000)
			if err != nil && !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
			_, err = s.PutIf(t.Context(), "counter", append(body, '.'), info.ETag)
			if err == nil {
				round++
			} else if !errors.Is(err, ErrLost) {
				t.Fatal(err)
			}
		}
		return
	}
	dir := t.TempDir()
	var cmds []*exec.Cmd
	for range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFileProcesses$", "-test.count=1")
		cmd.Env = append(os.Environ(), "STORE_RACE_DIR="+dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	body, _, err := ReadAll(t.Context(), openDir(t, dir), "counter", 1000)
	if err != nil || string(body) != strings.Repeat(".", 80) {
		t.Errorf("4 processes × 20 increments gave %d (%v)", len(body), err)
	}
}

func FuzzValidateKey(f *testing.F) {
	for _, k := range []string{"a/b", "../a", "/a", "a\x00", ".trainyard/x", "a/..", "a//b", "ü/ö"} {
		f.Add(k)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, key string) {
		if ValidateKey(key) != nil {
			return
		}
		joined := filepath.Join(dir, key)
		if !strings.HasPrefix(joined, dir+"/") || strings.HasPrefix(joined, filepath.Join(dir, reserved)+"/") || filepath.Clean(joined) != joined {
			t.Errorf("%q becomes %q", key, joined)
		}
	})
}
