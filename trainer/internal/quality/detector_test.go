package quality

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trainyard/trainyard/trainer/internal/corpus"
)

const prose = "Ordinary prose about the weather, long enough to be a document of its own."

func detect(o Options, text string) Flags {
	var m corpus.Measurer
	return o.Detect([]byte(text), m.Measure([]byte(text)))
}

func TestDetectors(t *testing.T) {
	none := Detectors
	for _, tt := range []struct {
		name, text string
		want       Detector // the only one that is set off
	}{
		{"prose", prose, none},
		{"code", "for i := 0; i < n; i++ {\n\ttotal += values[i]\n}\n// the sum of all values", none},
		{"a Go template", prose + " {{range .Items}}{{.Name}}{{end}} {{printf \"%d|%d\" 1 2}}", none},
		{"a shell test", prose + " if [[ -f $file ]]; then", none},
		{"equality", prose + "\nif a == b {\n== is for equality", none},
		{"wiki link", prose + " See [[Weather|the weather]].", WikiMarkup},
		{"wiki template", prose + " {{Infobox|name=x}}", WikiMarkup},
		{"wiki language marker", prose + " -{zh-hans:a;zh-hant:b}-", WikiMarkup},
		{"wiki bold", prose + " '''bold'''", WikiMarkup},
		{"wiki heading", prose + "\n== History ==\nmore", WikiMarkup},
		{"tag", prose + "<br/>", HTMLResidue},
		{"entity", prose + " &nbsp; and so on", HTMLResidue},
		{"comment", prose + " <!-- x -->", HTMLResidue},
		{"angle brackets", prose + " a<b and List<int> <nil>", none},
		{"control character", prose + "\x07", ControlChars},
		{"tab and line ends", prose + "\t\r\n", none},
		{"address", prose + " https://example.org", URL},
		{"address without scheme", prose + " www.example.org", URL},
		{"symbols", "*** !!! $$$ ### @@@ %%% ^^^ &&& ((( ))) words and words of ordinary text", SymbolSpam},
		{"repetition", strings.Repeat("buy now and save ", 10), HighRepetition},
		{"short", "forty-nine characters are one too few, as it is..", TooShort},
		{"fifty", "fifty characters are just enough for the detector!", none},
		{"fifty Chinese", strings.Repeat("天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余", 1) + "成岁律吕调阳云腾致雨露结为霜金生丽水玉出昆冈剑号巨阙", none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := detect(DefaultOptions(), tt.text)
			for d := range Detectors {
				if f.Has(d) != (d == tt.want) {
					t.Errorf("%s is %v (%d characters)", d, f.Has(d), utf8.RuneCountInString(tt.text))
				}
			}
		})
	}
}

// What cleaning leaves must not set off the detectors of what it removes.
func TestCleanedTextHasNoResidue(t *testing.T) {
	c := corpus.NewCleaner(corpus.DefaultClean())
	text := string(c.Clean([]byte(prose + "<p>a</p>&amp;lt;b&gt; <!-- c -->-{x}-\x00\x7f\ufeff")))
	f := detect(DefaultOptions(), text)
	if f != 0 {
		t.Errorf("%q sets off %b", text, f)
	}
}

func count(o Options, texts ...string) *Counter {
	c := NewCounter(o)
	for i, text := range texts {
		c.Add(detect(o, text), corpus.Document{Text: []byte(text), File: "f.txt", Number: int64(i + 1)})
	}
	return c
}

func TestReportJudgesAgainstThresholds(t *testing.T) {
	o := DefaultOptions()
	o.MaxPercent["url"] = 50
	sep, _ := corpus.ParseSeparator("blank-line")
	raw := count(o, prose, prose, "<b>", "x")
	for _, tt := range []struct {
		name string
		kept *Counter
		gate bool
	}{
		{"clean", count(o, prose), true},
		{"a share equal to the threshold passes", count(o, prose, prose+" www.x"), true},
		{"a share above it does not", count(o, prose, prose+" www.x", prose+" www.y"), false},
		{"no documents", count(o), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReport(sep, raw, tt.kept)
			if r.Gate != tt.gate {
				t.Errorf("gate is %v, want %v", r.Gate, tt.gate)
			}
			if r.Separator != "blank-lines:2" || r.RawDocuments != 4 || r.Documents != tt.kept.documents || len(r.Detectors) != int(Detectors) {
				t.Errorf("separator %q, %d raw and %d kept documents, %d detectors", r.Separator, r.RawDocuments, r.Documents, len(r.Detectors))
			}
			short := r.Detectors[TooShort]
			if short.RawFlagged != 2 || short.RawPercent != 50 || short.Documents != tt.kept.documents {
				t.Errorf("too_short: %+v", short)
			}
		})
	}
}

func TestExamplesAreBoundedAndValid(t *testing.T) {
	o := DefaultOptions()
	long := "日本語" + strings.Repeat("é語", 100) + " www.example.org"
	c := count(o, prose+" www.a\xff", long, "x"+long, "xx"+long)
	sep, _ := corpus.ParseSeparator("line")
	got := NewReport(sep, c, c).Detectors[URL]
	if got.Flagged != 4 || len(got.Examples) != 3 || got.Examples[1].Document != 2 || got.Examples[1].File != "f.txt" {
		t.Fatalf("%+v", got)
	}
	for _, e := range got.Examples {
		if len(e.Excerpt) > exampleBytes+2 || !utf8.ValidString(e.Excerpt) {
			t.Errorf("%d bytes: %q", len(e.Excerpt), e.Excerpt)
		}
	}
	for _, e := range got.Examples[1:] {
		if strings.ContainsRune(e.Excerpt, utf8.RuneError) {
			t.Errorf("cut in a character: %q", e.Excerpt)
		}
	}
}

// The same text is another corpus under another separator, and fails or passes
// with it.
func TestSensitivity(t *testing.T) {
	var docs []string
	for i := range 40 {
		doc := prose + " Once more, with feeling.\n\nshort"
		if i%10 == 0 {
			doc = "$$$ %%% !!! *** ###\n\nshort"
		}
		docs = append(docs, doc)
	}
	path := filepath.Join(t.TempDir(), "corpus.txt")
	if err := os.WriteFile(path, []byte(strings.Join(docs, "\n\n\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := corpus.Files([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	var seps []corpus.Separator
	for _, name := range []string{"blank-lines:3", "blank-line", "file"} {
		s, err := corpus.ParseSeparator(name)
		if err != nil {
			t.Fatal(err)
		}
		seps = append(seps, s)
	}
	var first string
	for workers := 1; workers <= 3; workers++ {
		rows, err := Sensitivity(t.Context(), files, corpus.ReaderOptions{}, seps, DefaultOptions(), workers)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			docs         int64
			spam, shorts float64
		}{{40, 10, 10}, {80, 5, 55}, {1, 0, 0}} {
			r := rows[i]
			if r.Documents != want.docs || math.Abs(r.Percent["symbol_spam"]-want.spam) > 1e-9 || math.Abs(r.Percent["too_short"]-want.shorts) > 1e-9 || r.Separator != seps[i].String() {
				t.Errorf("%s: %+v", seps[i], r)
			}
		}
		raw, _ := json.Marshal(rows)
		if workers == 1 {
			first = string(raw)
		} else if string(raw) != first {
			t.Errorf("%d workers give another table", workers)
		}
	}
}

func TestOptionsValidate(t *testing.T) {
	if err := DefaultOptions().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		edit func(*Options)
		want string
	}{
		{"forgotten threshold", func(o *Options) { delete(o.MaxPercent, "url") }, "url"},
		{"unknown detector", func(o *Options) { o.MaxPercent["typo"] = 1 }, "typo"},
		{"more than all", func(o *Options) { o.MaxPercent["url"] = 101 }, "101"},
		{"not a number", func(o *Options) { o.MaxPercent["url"] = math.NaN() }, "NaN"},
		{"ratio of zero", func(o *Options) { o.MaxSymbolRatio = 0 }, "max_symbol_ratio 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := DefaultOptions()
			tt.edit(&o)
			if err := o.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
