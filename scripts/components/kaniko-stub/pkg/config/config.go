// Package config declares the options that the CNB lifecycle's extender fills in.
package config

import "time"

// KanikoDir is the working directory of an image build.
var KanikoDir = "/kaniko"

// RegistryOptions stands for the settings of a registry.
type RegistryOptions struct{}

// CacheOptions says how long a cached layer lives.
type CacheOptions struct{ CacheTTL time.Duration }

// KanikoOptions are the options of one image build.
type KanikoOptions struct {
	CacheOptions CacheOptions

	BuildArgs         []string
	Cache             bool
	CacheCopyLayers   bool
	CacheRepo         string
	CacheRunLayers    bool
	Cleanup           bool
	CustomPlatform    string
	DockerfilePath    string
	IgnorePaths       []string
	IgnoreVarRun      bool
	InitialFSUnpacked bool
	NoPush            bool
	Reproducible      bool
	SnapshotMode      string
	SrcContext        string
}
