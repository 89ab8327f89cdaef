package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// listenerInCluster is the EventListener's address in pods.
const listenerInCluster = "http://el-trainyard." + Namespace + ".svc.cluster.local:8080"

// pushSettings are what the triggers of the demo's cluster have of their own, where
// others edit triggers/github.yaml and triggers/training.yaml.
type pushSettings struct {
	// URL is where runs fetch the repository from.
	URL string
	// Training are parameters of the TriggerBinding training.
	Training map[string]string
	// RunImage is the base of what is built.
	RunImage string
}

func (d *Demo) pushSettings() pushSettings {
	return pushSettings{
		URL: d.GitURL(),
		Training: map[string]string{
			"image-repository":    d.RegistryHost() + "/trainyard/trainer",
			"builder-image":       d.inCluster.Builder,
			"insecure-registries": d.RegistryHost(),
		},
		RunImage: d.inCluster.Run,
	}
}

// pushPaths are the files whose changes start a run: what the trainer is built from, and
// how it trains.
func pushPaths() []string { return []string{"^trainer/", `^project\.toml$`, "^examples/push/"} }

// allowed is the allow-list, as a CEL expression: JSON is one.
func (s pushSettings) allowed() (string, error) {
	type repository struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	list, err := json.MarshalIndent(struct {
		Repositories map[string]repository `json:"repositories"`
		Branches     []string              `json:"branches"`
		Paths        []string              `json:"paths"`
		Config       string                `json:"config"`
	}{
		map[string]repository{WebhookRepository: {"trainyard", s.URL}}, []string{PushBranch}, pushPaths(), "examples/push/train.yaml",
	}, "", "  ")
	return string(list), err
}

// patch puts the settings into the rendered objects. It is an error when there is no
// place for one of them.
func (s pushSettings) patch(documents []byte) ([]byte, error) {
	patches := map[string]func(map[string]any) error{
		"Trigger github": s.patchTrigger, "TriggerBinding training": s.patchBinding, "TriggerTemplate train-on-push": s.patchTemplate,
	}
	var out bytes.Buffer
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(documents)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		metadata, _ := object["metadata"].(map[string]any)
		name := fmt.Sprintf("%v %v", object["kind"], metadata["name"])
		if patch := patches[name]; patch != nil {
			delete(patches, name)
			if err := patch(object); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if document, err = yaml.Marshal(object); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(&out, "---\n%s\n", bytes.TrimSpace(document))
	}
	for name := range patches {
		return nil, fmt.Errorf("there is no %s", name)
	}
	return out.Bytes(), nil
}

func (s pushSettings) patchTrigger(object map[string]any) error {
	list, err := s.allowed()
	if err != nil {
		return err
	}
	for _, interceptor := range items(object, "spec", "interceptors") {
		if interceptor["name"] != "allowed" {
			continue
		}
		for _, param := range items(interceptor, "params") {
			for _, overlay := range items(param, "value") {
				if overlay["key"] == "allowed" {
					overlay["expression"] = list
					return nil
				}
			}
		}
	}
	return errors.New("it has no allow-list")
}

func (s pushSettings) patchBinding(object map[string]any) error {
	set := map[string]bool{}
	for _, param := range items(object, "spec", "params") {
		name, _ := param["name"].(string)
		if value, has := s.Training[name]; has {
			param["value"] = value
			set[name] = true
		}
	}
	for name := range s.Training {
		if !set[name] {
			return fmt.Errorf("it has no parameter %s", name)
		}
	}
	return nil
}

// patchTemplate gives runs the base that make demo builds on: the builder may name one
// of a registry that is out of reach.
func (s pushSettings) patchTemplate(object map[string]any) error {
	runs := items(object, "spec", "resourcetemplates")
	if len(runs) != 1 {
		return fmt.Errorf("it has %d runs", len(runs))
	}
	spec, _ := runs[0]["spec"].(map[string]any)
	params, _ := spec["params"].([]any)
	if params == nil {
		return errors.New("its run has no parameters")
	}
	spec["params"] = append(params, map[string]any{"name": "run-image", "value": s.RunImage})
	return nil
}

// items are the objects of a list below an object.
func items(object map[string]any, path ...string) []map[string]any {
	for _, key := range path[:len(path)-1] {
		object, _ = object[key].(map[string]any)
	}
	list, _ := object[path[len(path)-1]].([]any)
	var out []map[string]any
	for _, item := range list {
		if of, is := item.(map[string]any); is {
			out = append(out, of)
		}
	}
	return out
}
