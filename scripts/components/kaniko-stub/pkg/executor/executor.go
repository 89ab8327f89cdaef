// Package executor would run a Dockerfile; here it refuses to.
package executor

import (
	"errors"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/osscontainertools/kaniko/pkg/config"
)

// DoBuild always fails: this lifecycle is built without image extensions.
func DoBuild(*config.KanikoOptions) (v1.Image, error) {
	return nil, errors.New("image extensions are not supported by this lifecycle build")
}
