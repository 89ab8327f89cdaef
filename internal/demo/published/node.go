package published

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/trainyard/trainyard/internal/demo/gomodule"
	"github.com/trainyard/trainyard/internal/demo/imagelock"
)

// kindDefaults is the file of kind's module that names the node image, by digest,
// that this version of kind was tested with.
const kindDefaults = "pkg/apis/config/defaults/image.go"

// nodeImage reads kind's source instead of importing it, which would pull its
// dependencies into this module for one string.
func nodeImage(kind gomodule.Module) (imagelock.Image, error) {
	source, err := fs.ReadFile(kind.FS(), kindDefaults)
	if err != nil {
		return imagelock.Image{}, fmt.Errorf("find the node image of %s: %w", kind, err)
	}
	reference, err := constant(source, "Image")
	if err != nil {
		return imagelock.Image{}, fmt.Errorf("find the node image of %s: %s: %w", kind, kindDefaults, err)
	}
	tagged, digest, _ := strings.Cut(reference, "@")
	tag, err := name.NewTag(tagged) // as Docker writes names: without the host
	if err != nil {
		return imagelock.Image{}, fmt.Errorf("node image of %s: %w", kind, err)
	}
	return pinned(tag.Name()+"@"+digest, kind.String())
}

// constant returns the value of a string constant of a Go file.
func constant(source []byte, wanted string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, identifier := range values.Names {
				if identifier.Name != wanted || i >= len(values.Values) {
					continue
				}
				literal, ok := values.Values[i].(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return "", fmt.Errorf("constant %s is no string as it is written: look up where this version has it", wanted)
				}
				return strconv.Unquote(literal.Value)
			}
		}
	}
	return "", fmt.Errorf("no constant %s: look up where this version has it", wanted)
}
