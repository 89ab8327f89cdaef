package tekton

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	pipelinesController = "tekton-pipelines-controller"
	triggersController  = "tekton-triggers-controller"
	shellImageFlag      = "-shell-image"
)

// configure changes what a namespace with the restricted Pod Security Standard,
// remote tasks and pipelines, and a host without the public registries need.
func (r Release) configure(objects []object, settings Settings) error {
	switch r.Module {
	case PipelinesModule:
		// What Tekton adds to a pod gets a security context too.
		if err := setData(objects, "feature-flags", "set-security-context", "true"); err != nil {
			return err
		}
		for _, resolver := range []string{"bundles", "git", "cluster"} {
			if err := setData(objects, "resolvers-feature-flags", "enable-"+resolver+"-resolver", "true"); err != nil {
				return err
			}
		}
		if settings.ShellImage == "" {
			return nil
		}
		return setArgument(objects, pipelinesController, shellImageFlag, settings.ShellImage)
	case TriggersModule:
		// An EventListener's pod runs in the user's namespace.
		return setSwitch(objects, triggersController, "-el-security-context", true)
	}
	return fmt.Errorf("%s is neither %s nor %s", r.Module, PipelinesModule, TriggersModule)
}

// ShellImage returns the image that the release's own manifests name for script
// steps.
func (r Release) ShellImage() (string, error) {
	objects, err := r.read()
	if err != nil {
		return "", err
	}
	var image string
	err = editArguments(objects, pipelinesController, func(args []string) ([]string, error) {
		at, err := argument(args, shellImageFlag)
		if err == nil {
			image = args[at]
		}
		return args, err
	})
	if err != nil {
		return "", fmt.Errorf("shell image of %s: %w", r, err)
	}
	return image, nil
}

// setData changes a value of a ConfigMap. One that is not there is an error: the
// project would not read it.
func setData(objects []object, configMap, key, value string) error {
	one, err := find(objects, "ConfigMap", configMap)
	if err != nil {
		return err
	}
	if _, found, err := unstructured.NestedString(one.Object, "data", key); err != nil || !found {
		return errors.Join(fmt.Errorf("%s: ConfigMap %s has no %s: look up what this version calls it", one.file, configMap, key), err)
	}
	return unstructured.SetNestedField(one.Object, value, "data", key)
}

// setArgument changes the value that follows a flag.
func setArgument(objects []object, deployment, flag, value string) error {
	return editArguments(objects, deployment, func(args []string) ([]string, error) {
		at, err := argument(args, flag)
		if err != nil {
			return nil, err
		}
		args[at] = value
		return args, nil
	})
}

func argument(args []string, flag string) (int, error) {
	at := slices.Index(args, flag)
	if at < 0 || at+1 == len(args) {
		return 0, fmt.Errorf("no argument after %s: look up what this version calls it", flag)
	}
	return at + 1, nil
}

// setSwitch changes a boolean flag, whose value Go's flag package takes only
// after an equals sign.
func setSwitch(objects []object, deployment, flag string, value bool) error {
	return editArguments(objects, deployment, func(args []string) ([]string, error) {
		at := slices.IndexFunc(args, func(arg string) bool { return arg == flag || strings.HasPrefix(arg, flag+"=") })
		if at < 0 {
			return nil, fmt.Errorf("no argument %s: look up what this version calls it", flag)
		}
		args[at] = fmt.Sprintf("%s=%t", flag, value)
		return args, nil
	})
}

// editArguments changes the arguments of a deployment's only container.
func editArguments(objects []object, deployment string, edit func([]string) ([]string, error)) error {
	one, err := find(objects, "Deployment", deployment)
	if err != nil {
		return err
	}
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(one.Object, path...)
	if err != nil || len(containers) != 1 {
		return errors.Join(fmt.Errorf("%s: Deployment %s: want one container, not %d", one.file, deployment, len(containers)), err)
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return fmt.Errorf("%s: Deployment %s: its container is no object", one.file, deployment)
	}
	args, _, err := unstructured.NestedStringSlice(container, "args")
	if err == nil {
		args, err = edit(args)
	}
	if err == nil {
		err = unstructured.SetNestedStringSlice(container, args, "args")
	}
	if err != nil {
		return fmt.Errorf("%s: Deployment %s: %w", one.file, deployment, err)
	}
	return unstructured.SetNestedSlice(one.Object, containers, path...)
}

func find(objects []object, kind, objectName string) (object, error) {
	for _, one := range objects {
		if one.GetKind() == kind && one.GetName() == objectName {
			return one, nil
		}
	}
	return object{}, fmt.Errorf("no %s %s: look up what this version calls it", kind, objectName)
}
