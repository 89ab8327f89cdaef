// Package image holds the hook through which the lifecycle hands over a base image.
package image

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/osscontainertools/kaniko/pkg/config"
)

// RetrieveRemoteImage is set by the lifecycle and never called.
var RetrieveRemoteImage func(image string, opts config.RegistryOptions, customPlatform string) (v1.Image, error)
