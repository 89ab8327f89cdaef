package tekton

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// configFolder holds the manifests in every Tekton project. The releases are made
// of all of it, sub-folders too: Pipelines in one file (ko's -R), Triggers with
// its interceptors in a second.
const configFolder = "config"

// object is a Kubernetes object and where it was read.
type object struct {
	*unstructured.Unstructured
	file string
}

// read returns all objects of the release, in the order of files and documents.
func (r Release) read() ([]object, error) {
	var objects []object
	err := fs.WalkDir(r.FS, configFolder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !isManifest(file) {
			return nil
		}
		data, err := fs.ReadFile(r.FS, file)
		if err != nil {
			return err
		}
		decoded, err := decode(file, data)
		objects = append(objects, decoded...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the manifests of %s: %w", r, err)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("read the manifests of %s: no object in folder %s", r, configFolder)
	}
	return objects, nil
}

// isManifest tells as ko does which files are manifests.
func isManifest(file string) bool {
	switch path.Ext(file) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// decode reads the objects of one file. A key given twice is an error, since
// which of the two wins would be the reader's choice.
func decode(file string, data []byte) ([]object, error) {
	var objects []object
	for i, document := range split(data) {
		fail := func(err error) ([]object, error) {
			return nil, fmt.Errorf("%s, document %d: %w", file, i+1, err)
		}
		encoded, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return fail(err)
		}
		if bytes.Equal(encoded, []byte("null")) {
			continue // comments only
		}
		one := object{new(unstructured.Unstructured), file}
		if err := one.UnmarshalJSON(encoded); err != nil {
			return fail(err)
		}
		if one.GetAPIVersion() == "" || one.GetName() == "" || one.IsList() {
			return fail(fmt.Errorf("want one object with apiVersion, kind and name, not a list"))
		}
		objects = append(objects, one)
	}
	return objects, nil
}

// split cuts a stream into documents at the markers "---" and "...", which by
// YAML's grammar are markers wherever they start a line. Text after the dashes
// belongs to the next document.
func split(data []byte) [][]byte {
	var documents [][]byte
	var document []byte
	for line := range bytes.Lines(data) {
		if marker(line) {
			documents = append(documents, document)
			document = append([]byte(nil), line[len("---"):]...)
			continue
		}
		document = append(document, line...)
	}
	return append(documents, document)
}

func marker(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || strings.ContainsRune(" \t\r\n", rune(line[3]))
}
