package gate

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestReadPolicy(t *testing.T) {
	want := Default()
	want.MaxValLoss, want.MaxRegression, want.WithinNoise = ptr(6.0), ptr(-0.01), NoisePasses
	want.RequiredFiles = []string{"val.bin", "lineage/train.json"}
	for name, text := range map[string]string{
		"YAML": "max_val_loss: 6.0\nmax_regression: -0.01\nwithin_noise: pass\nrequired_files: [val.bin, lineage/train.json]\n",
		"JSON": `{"max_val_loss": 6, "max_regression": -0.01, "within_noise": "pass", "required_files": ["val.bin", "lineage/train.json"]}`,
	} {
		got, err := ReadPolicy(strings.NewReader(text), Default())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	got, err := ReadPolicy(strings.NewReader(""), Default())
	if err != nil || !reflect.DeepEqual(got, Default()) {
		t.Errorf("empty file: got %+v, %v, want the default", got, err)
	}
}

func TestReadPolicyRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"misspelt key":         {"max_val_los: 6", "max_val_los"},
		"repeated key":         {"max_val_loss: 6\nmax_val_loss: 60", "already defined"},
		"repeated key in JSON": {`{"max_val_loss": 6, "max_val_loss": 60}`, "already defined"},
		"two documents":        {"max_val_loss: 6\n---\nmax_val_loss: 60", "more than one document"},
		"a list":               {"- 1", "cannot unmarshal"},
		"not a number":         {"max_val_loss: low", "cannot unmarshal"},
		"NaN":                  {"max_val_loss: .nan", "max_val_loss is NaN"},
		"infinite":             {"max_perplexity: .inf", "max_perplexity is +Inf"},
		"negative":             {"max_standard_error: -1", "max_standard_error is -1"},
		"negative step":        {"min_train_iter: -1", "min_train_iter is -1"},
		"negative documents":   {"min_documents: -1", "min_documents is -1"},
		"noise":                {"within_noise: ignore", `within_noise is "ignore"`},
		"noise empty":          {"within_noise: ''", `within_noise is ""`},
		"file outside":         {"required_files: [../x]", `"../x"`},
		"file absolute":        {"required_files: [/etc/passwd]", `"/etc/passwd"`},
		"file not clean":       {"required_files: [a//b]", `"a//b"`},
		"file with no name":    {"required_files: ['']", `""`},
		"broken":               {"max_val_loss: [", "did not find"},
		"huge":                 {"# " + strings.Repeat("x", maxPolicy), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadPolicy(strings.NewReader(c.text), Default())
			if !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want ErrPolicy with %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of more than one line: %q", err)
			}
		})
	}
}

func TestImageDigest(t *testing.T) {
	hex := strings.Repeat("0a", 32)
	for _, ref := range []string{
		"train@sha256:" + hex, "a/b/c@sha256:" + hex, "registry.example/tools/train@sha256:" + hex,
		"localhost:5001/train:v1.2_3-x@sha256:" + hex, "Registry.Example:443/a-b__c.d@sha256:" + hex,
	} {
		if got, err := ImageDigest(ref); err != nil || got != hex {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
	for name, ref := range map[string]string{
		"empty": "", "tag": "train:latest", "no name": "@sha256:" + hex, "short digest": "train@sha256:" + hex[1:],
		"long digest": "train@sha256:" + hex + "0", "upper case digest": "train@sha256:" + strings.ToUpper(hex),
		"another algorithm": "train@sha512:" + hex, "newline after": "train@sha256:" + hex + "\n", "space": "tr ain@sha256:" + hex,
		"two digests": "train@sha256:" + hex + "@sha256:" + hex, "digest alone": "sha256:" + hex,
		"huge": strings.Repeat("a/", 1000) + "a@sha256:" + hex,
	} {
		if got, err := ImageDigest(ref); !errors.Is(err, ErrImage) {
			t.Errorf("%s: %q, %v, want ErrImage", name, got, err)
		}
	}
}

func FuzzReadPolicy(f *testing.F) {
	f.Add("max_val_loss: 6.0\nrequired_files: [a, b]\nwithin_noise: pass")
	f.Add(`{"max_val_loss": 6, "min_train_iter": 3}`)
	f.Add("a: &a [*a, *a]")
	f.Add("max_val_loss: 0x1p3\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadPolicy(strings.NewReader(text), Default())
		if err != nil {
			if !errors.Is(err, ErrPolicy) {
				t.Errorf("error %v is not an ErrPolicy", err)
			}
			return
		}
		if p.Validate() != nil || (p.MaxValLoss != nil && math.IsNaN(*p.MaxValLoss)) {
			t.Errorf("accepted %q as %+v", text, p)
		}
	})
}
