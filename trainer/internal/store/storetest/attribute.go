package storetest

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryAttribute makes a file with an extended attribute.
func tryAttribute(path string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(path)
	return unix.Setxattr(path, "user.probe", []byte("1"), 0)
}
