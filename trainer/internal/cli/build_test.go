package cli

import (
	"runtime/debug"
	"testing"
)

func TestBuildThatGoStamped(t *testing.T) {
	info := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	for name, c := range map[string]struct {
		linked Build
		info   *debug.BuildInfo
		want   Build
	}{
		"a plain build in a checkout": {Build{}, info("v0.0.0-2026-abc", revision), Build{"v0.0.0-2026-abc", "abc"}},
		"a plain build of an archive": {Build{}, info("(devel)"), Build{}},
		"what was linked wins":        {Build{"v1", "def"}, info("v0.0.0-2026-abc", revision), Build{"v1", "def"}},
		"no information":              {Build{Version: "v1"}, nil, Build{Version: "v1"}},
	} {
		if got := c.linked.orStamped(c.info); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
