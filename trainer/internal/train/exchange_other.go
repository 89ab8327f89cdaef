//go:build !linux

package train

import "errors"

// exchange is a Linux call; elsewhere two renames do.
func exchange(_, _ string) error { return errors.ErrUnsupported }
