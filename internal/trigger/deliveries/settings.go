package deliveries

import "encoding/json"

// Names that the table is about.
const (
	Repository = "trainyard/trainyard"
	ShortName  = "trainyard"
	Branch     = "main"
	Release    = "release/1.0" // the other branch that may start runs
)

// Settings are those of a Trigger, see the interceptor allowed.
type Settings struct {
	Repositories map[string]Source `json:"repositories"`
	Branches     []string          `json:"branches"`
	Paths        []string          `json:"paths"`
	Config       string            `json:"config"`
}

// Source says what a repository is called in names, and where it is fetched from.
type Source struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// AnyFile are the settings that Table is for.
func AnyFile(url string) Settings {
	return Settings{map[string]Source{Repository: {ShortName, url}}, []string{Branch, Release}, []string{}, ""}
}

// SomeFiles are the settings that FilesTable is for.
func SomeFiles(url string) Settings {
	s := AnyFile(url)
	s.Paths, s.Config = []string{"^trainer/", `^project\.toml$`}, "trainer/train.yaml"
	return s
}

// Expression is the settings as the interceptor has them.
func (s Settings) Expression() (string, error) {
	// What is JSON is CEL too.
	data, err := json.Marshal(s)
	return string(data), err
}
