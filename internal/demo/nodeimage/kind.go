package nodeimage

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/internal/demo/ociimage"
)

// kindSource is what kind's own module says about a node.
type kindSource struct {
	// dir is the module's folder.
	dir string
	// storageManifest installs the default storage class, with these images:
	storageManifest                string
	provisionerImage, storageImage string
}

// readKind reads kind's module. Its constants are not exported to others: they
// are evaluated from the source, so that the pinned version alone decides.
func readKind(dir string) (kindSource, error) {
	constants, err := stringConstants(filepath.Join(dir, "pkg/build/nodeimage/const_storage.go"))
	if err != nil {
		return kindSource{}, fmt.Errorf("read kind's storage manifest: %w", err)
	}
	source := kindSource{
		dir:              dir,
		storageManifest:  constants["defaultStorageManifest"],
		provisionerImage: constants["storageProvisionerImage"],
		storageImage:     constants["storageHelperImage"],
	}
	if source.storageManifest == "" || source.provisionerImage == "" || source.storageImage == "" {
		return kindSource{}, fmt.Errorf("%s: this version of kind keeps its storage manifest elsewhere", dir)
	}
	return source, nil
}

// stringConstants evaluates the string constants of one Go file that imports
// nothing.
func stringConstants(file string) (map[string]string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	config := types.Config{Error: func(error) {}}
	// Errors about what other files declare do not matter to constants.
	pkg, _ := config.Check("constants", files, []*ast.File{parsed}, nil)
	out := map[string]string{}
	for _, name := range pkg.Scope().Names() {
		if c, ok := pkg.Scope().Lookup(name).(*types.Const); ok && c.Val().Kind() == constant.String {
			out[name] = constant.StringVal(c.Val())
		}
	}
	return out, nil
}

// nodeFiles returns the entries that kind's base image adds to Debian, with the
// modes that its Dockerfile gives them.
func (k kindSource) nodeFiles() ([]ociimage.Entry, error) {
	root := filepath.Join(k.dir, "images/base/files")
	var entries []ociimage.Entry
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if strings.HasPrefix(name, "usr/local/bin/") || strings.HasPrefix(name, "kind/bin/") {
			mode = 0o755
		}
		// Read now: the files of a module cache have no owner's write bit, which
		// is of no interest in an image.
		data, err := os.ReadFile(path)
		entries = append(entries, ociimage.Entry{Path: filepath.ToSlash(name), Data: data, Mode: mode})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read kind's node files: %w", err)
	}
	return entries, nil
}
