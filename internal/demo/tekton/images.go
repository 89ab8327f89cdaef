package tekton

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// scheme marks the import path of a main package whose image is meant.
const scheme = "ko://"

// reference is the scheme and all that an import path may consist of.
var reference = regexp.MustCompile(scheme + `[A-Za-z0-9._~+/-]*`)

// Images returns the import paths of the main packages whose images the
// manifests name, sorted.
func Images(releases ...Release) ([]string, error) {
	seen := make(map[string]bool)
	for _, release := range releases {
		objects, err := release.read()
		if err != nil {
			return nil, err
		}
		for _, one := range objects {
			err := eachString(one.Object, func(_, text string) (string, error) {
				for _, found := range reference.FindAllString(text, -1) {
					seen[strings.TrimPrefix(found, scheme)] = true
				}
				return text, nil
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.file, err)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// imageSet is a checked map from import path to image.
type imageSet map[string]string

// checkImages accepts digest references alone: a tag would be resolved again by
// every node, to whatever it names then.
func checkImages(images map[string]string) (imageSet, error) {
	for _, importPath := range slices.Sorted(maps.Keys(images)) {
		if err := checkDigest(images[importPath]); err != nil {
			return nil, fmt.Errorf("image of %s: %w", importPath, err)
		}
	}
	return images, nil
}

func checkDigest(image string) error {
	if _, err := name.NewDigest(image, name.StrictValidation); err != nil {
		return fmt.Errorf("want HOST/REPOSITORY@sha256:DIGEST: %w", err)
	}
	return nil
}

// replace puts images into a text for the import paths in it.
func (s imageSet) replace(text string) (string, error) {
	var unknown []string
	replaced := reference.ReplaceAllStringFunc(text, func(found string) string {
		importPath := strings.TrimPrefix(found, scheme)
		image, known := s[importPath]
		if !known {
			unknown = append(unknown, importPath)
		}
		return image
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("no image is given for %s", strings.Join(unknown, ", "))
	}
	return replaced, nil
}

// eachString calls change with every string of a tree and the key that it is a
// value of (of the list, for one in a list), and puts back what it returns. It
// goes through keys in order, so that of two errors always the same is reported.
func eachString(tree map[string]any, change func(key, text string) (string, error)) error {
	keys := make([]string, 0, len(tree))
	for key := range tree {
		if strings.Contains(key, scheme) {
			return fmt.Errorf("key %q: %s is replaced in values, not in keys", key, scheme)
		}
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		changed, err := eachStringOf(key, tree[key], change)
		if err != nil {
			return err
		}
		tree[key] = changed
	}
	return nil
}

func eachStringOf(key string, value any, change func(key, text string) (string, error)) (any, error) {
	switch value := value.(type) {
	case string:
		return change(key, value)
	case map[string]any:
		return value, eachString(value, change)
	case []any:
		for i := range value {
			changed, err := eachStringOf(key, value[i], change)
			if err != nil {
				return nil, err
			}
			value[i] = changed
		}
	}
	return value, nil
}
