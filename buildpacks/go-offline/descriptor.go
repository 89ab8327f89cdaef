package gooffline

import _ "embed" // of the descriptor

//go:embed buildpack.toml
var descriptor string

// Descriptor returns the contents of buildpack.toml.
func Descriptor() string { return descriptor }
