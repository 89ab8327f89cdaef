package report

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
)

// Card is what a model card tells.
type Card struct {
	Name    string
	Digest  string
	RunID   string
	License string // SPDX identifier, "" where nobody said
	Eval    *evaluate.Report
	Reasons []string          // of the gate, when it blocked
	Stages  []*lineage.Record // of the run
}

// cardFront is the YAML in front of a Hugging Face model card (the model card
// metadata of the Hub's documentation).
type cardFront struct {
	License     string      `yaml:"license,omitempty"`
	LibraryName string      `yaml:"library_name"`
	PipelineTag string      `yaml:"pipeline_tag"`
	Tags        []string    `yaml:"tags"`
	ModelIndex  []cardIndex `yaml:"model-index,omitempty"`
}

type cardIndex struct {
	Name    string       `yaml:"name"`
	Results []cardResult `yaml:"results"`
}

type cardResult struct {
	Task    cardTask     `yaml:"task"`
	Dataset cardDataset  `yaml:"dataset"`
	Metrics []cardMetric `yaml:"metrics"`
}

type cardTask struct {
	Type string `yaml:"type"`
}

type cardDataset struct {
	Name string `yaml:"name"`
	Type string `yaml:"type"`
}

type cardMetric struct {
	Type  string  `yaml:"type"`
	Name  string  `yaml:"name"`
	Value float64 `yaml:"value"`
}

// WriteCard writes a model card in Markdown. It holds no time of writing, so
// equal models have equal cards.
func WriteCard(w io.Writer, c Card) error {
	front := cardFront{
		License: c.License, LibraryName: "transformers", PipelineTag: "text-generation",
		Tags: []string{"gpt2", "text-generation", "trainyard"},
	}
	if c.Eval != nil {
		index := cardIndex{Name: c.Name}
		for _, s := range []struct {
			name string
			evaluate.SplitReport
		}{{"validation", c.Eval.Splits.Val}, {"test", c.Eval.Splits.Test}} {
			index.Results = append(index.Results, cardResult{
				Task: cardTask{"text-generation"}, Dataset: cardDataset{"held-out " + s.name + " split", s.SHA256},
				Metrics: []cardMetric{
					{"loss", "nats per token", s.Loss.Value}, {"perplexity", "perplexity", s.Perplexity.Value},
					{"bits_per_byte", "bits per byte", s.BitsPerByte.Value},
				},
			})
		}
		front.ModelIndex = []cardIndex{index}
	}
	head, err := yaml.Marshal(front)
	if err != nil {
		return fmt.Errorf("model card: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "---\n%s---\n\n# %s\n\n", head, plain(c.Name))
	fmt.Fprintf(&b, "A GPT-2 language model, trained by run %s. SHA-256 of the model: `%s`.\n\n", code(c.RunID), onlyHex(c.Digest))
	if c.Eval != nil {
		cardEval(&b, c.Eval)
	}
	if len(c.Reasons) > 0 {
		b.WriteString("## Not passed by the gate\n\n")
		for _, r := range c.Reasons {
			fmt.Fprintf(&b, "- %s\n", plain(r))
		}
		b.WriteString("\n")
	}
	cardStages(&b, c.Stages)
	b.WriteString("## Use\n\n```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n" +
		"model = AutoModelForCausalLM.from_pretrained(\".\")\ntokenizer = AutoTokenizer.from_pretrained(\".\")\n```\n")
	_, err = io.WriteString(w, b.String())
	return err
}

func cardEval(b *strings.Builder, r *evaluate.Report) {
	how := "on the whole held-out splits"
	if r.Mode == evaluate.Sampled {
		how = "on a sample of the held-out splits"
	}
	fmt.Fprintf(b, "## Evaluation\n\nMeasured %s after step %d, %.3f million parameters; 95 %% intervals.\n\n", how, r.TrainIter, r.ParamsM)
	b.WriteString("| figure | validation | test |\n|---|---|---|\n")
	for _, f := range figures(r) {
		fmt.Fprintf(b, "| %s | %s | %s |\n", plain(f.Name), plain(f.Val), plain(f.Test))
	}
	b.WriteString("\n")
}

// cardStages tells what made the model: settings, code and data by digest. Times
// and hosts are in the lineage records.
func cardStages(b *strings.Builder, recs []*lineage.Record) {
	if len(recs) == 0 {
		return
	}
	b.WriteString("## How it was made\n\n")
	for _, r := range recs {
		fmt.Fprintf(b, "- %s", plain(r.Stage))
		if s := lineage.Settings(r); s != "" {
			fmt.Fprintf(b, ": %s", code(s))
		}
		b.WriteString("\n")
		for _, in := range r.Inputs {
			fmt.Fprintf(b, "  - from %s %s %s\n", plain(in.Kind), code(in.Name), code(in.ID()))
		}
	}
	b.WriteString("\n")
}

// plain makes text harmless in Markdown: one line, no markup, no HTML.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\u0085':
			b.WriteByte(' ')
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case strings.ContainsRune("\\`*_[]#|~", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// code puts text into a code span. A backtick would end it, so there is none.
func code(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\u0085':
			return ' '
		}
		return r
	}, s)
	if strings.TrimSpace(s) == "" {
		return "(empty)"
	}
	return "`" + s + "`"
}

func onlyHex(s string) string {
	return strings.Map(func(r rune) rune {
		if (r >= '0' && r <= '9') || (r >= 'a' && r <= 'f') {
			return r
		}
		return -1
	}, s)
}
