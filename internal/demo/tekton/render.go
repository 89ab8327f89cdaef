package tekton

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Settings say what the manifests get that is not in them.
type Settings struct {
	// Images has an image by digest for each import path that Images returns.
	Images map[string]string
	// ShellImage, if set, is the image by digest that script steps start from,
	// instead of the published one that the manifests name. It needs sh, and must
	// be able to run as root.
	ShellImage string
}

// Render returns the objects to apply, group by group.
func Render(settings Settings, releases ...Release) ([]Group, error) {
	images, err := checkImages(settings.Images)
	if err != nil {
		return nil, err
	}
	if settings.ShellImage != "" {
		if err := checkDigest(settings.ShellImage); err != nil {
			return nil, fmt.Errorf("shell image: %w", err)
		}
	}
	var all []object
	for _, release := range releases {
		objects, err := release.read()
		if err != nil {
			return nil, err
		}
		for _, one := range objects {
			if err := resolve(one, release.Version, images); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", one.file, release, err)
			}
		}
		if err := release.configure(objects, settings); err != nil {
			return nil, fmt.Errorf("set up %s: %w", release, err)
		}
		all = append(all, objects...)
	}
	if err := checkWorkloads(all); err != nil {
		return nil, err
	}
	return group(all)
}

// resolve does to an object what the project's release does: ko puts images in,
// then "devel" becomes the version.
func resolve(one object, version string, images imageSet) error {
	return eachString(one.Object, func(key, text string) (string, error) {
		if text == "devel" && releaseKey(key) {
			return version, nil
		}
		return images.replace(text)
	})
}

// releaseKey tells the labels and the value of the info ConfigMap that
// tekton/publish.yaml, which makes the releases, puts the version in.
func releaseKey(key string) bool {
	switch key {
	case "version", "app.kubernetes.io/version", "pipeline.tekton.dev/release", "triggers.tekton.dev/release":
		return true
	}
	return false
}

// checkWorkloads makes sure that every container's image is given by digest:
// the ones that the manifests name themselves too.
func checkWorkloads(objects []object) error {
	for _, one := range objects {
		for _, field := range []string{"initContainers", "containers"} {
			containers, _, err := unstructured.NestedSlice(one.Object, "spec", "template", "spec", field)
			if err != nil {
				continue // another kind's spec.template
			}
			for _, container := range containers {
				fields, _ := container.(map[string]any)
				image, _ := fields["image"].(string)
				if err := checkDigest(image); err != nil {
					return fmt.Errorf("%s: %s %s: image %q: %w", one.file, one.GetKind(), one.GetName(), image, err)
				}
			}
		}
	}
	return nil
}
