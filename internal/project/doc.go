// Package project reads project.toml, the buildpacks' project descriptor, with
// pack's own parser, so that the file means in the cluster what it means to
// pack build on a laptop.
//
// It only reads. What a builder makes of the settings is package plan's business.
package project
