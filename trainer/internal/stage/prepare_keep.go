package stage

import (
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/corpus"
	"github.com/trainyard/trainyard/trainer/internal/quality"
)

// keeper decides about documents in their order: what came before, and where
// they go.
type keeper struct {
	p         *preparing
	data      DataReport
	exact     *corpus.Exact
	near      *corpus.Near
	raw, kept *quality.Counter
	fates     [corpus.Fates]int64
}

func newKeeper(p *preparing) *keeper {
	return &keeper{
		p: p, data: newDataReport(p.opts, p.sep),
		exact: corpus.NewExact(), near: corpus.NewNear(p.opts.Near),
		raw: quality.NewCounter(p.opts.Quality), kept: quality.NewCounter(p.opts.Quality),
	}
}

func (k *keeper) keep(j judged) error {
	from := 0
	for i := range j.verdicts {
		d, v := j.doc(i), &j.verdicts[i]
		k.raw.Add(v.raw, d)
		d.Text, from = j.clean[from:v.end], v.end
		fate := k.fate(v)
		k.fates[fate]++
		if fate != corpus.Kept {
			continue
		}
		k.kept.Add(v.kept, d)
		k.data.CharsOut += int64(v.chars)
		k.data.BytesOut += int64(len(d.Text))
		if err := k.spool(spooled{text: d.Text, sum: v.sum, sig: v.sig}); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) spool(d spooled) error {
	if !k.p.opts.Memorize {
		return k.p.spools[k.p.opts.Split.Assign(d.sum, k.p.opts.SplitSeed)].add(d)
	}
	for _, s := range k.p.spools {
		if err := s.add(d); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) fate(v *verdict) corpus.Fate {
	switch {
	case v.fate != corpus.Kept:
		return v.fate
	case k.p.opts.DropExact && k.exact.Seen(v.sum):
		return corpus.ExactDuplicate
	case k.p.opts.DropNear && k.near.Seen(&v.sig):
		return corpus.NearDuplicate
	}
	return corpus.Kept
}

// finish completes the counts and refuses a corpus that cannot be used.
func (k *keeper) finish(src *corpus.Reader) error {
	stats := src.Stats()
	k.data.Sources = src.Sums()
	k.data.CorpusSHA256 = corpus.Digest(k.data.Sources)
	k.data.BytesIn, k.data.DocsIn, k.data.DocsOut = stats.Bytes, stats.Documents, k.fates[corpus.Kept]
	k.data.CutDocuments, k.data.SkippedRecords = stats.Cut, stats.TooLong
	for f := corpus.Kept + 1; f < corpus.Fates; f++ {
		k.data.Dropped[f.String()] = k.fates[f]
	}
	if k.p.opts.DropExact {
		k.data.Exact.FalsePositiveOdds = corpus.FalsePositiveOdds(k.exact.Len())
	}
	k.data.Near.Forgotten = k.near.Forgotten()
	k.p.report.Data = k.data
	k.p.report.Quality = quality.NewReport(k.p.sep, k.raw, k.kept)
	return k.check()
}

func (k *keeper) check() error {
	if k.data.DocsIn == 0 {
		return k.p.fail("the corpus is empty: no document in %s", counted(len(k.p.files), "file"))
	}
	if k.data.DocsOut == 0 {
		return k.p.fail("no document of %d is left, dropped: %s: loosen the filters", k.data.DocsIn, k.droppedWords())
	}
	for s := corpus.Train; s < corpus.Splits; s++ {
		if k.p.opts.Split.Of(s) > 0 && k.p.spools[s].docs == 0 {
			return k.p.fail("separator %s finds %s, keeps %d (dropped: %s), and none of them falls to the %s split: give more documents, another separator, or the split no share",
				k.p.sep, counted(k.data.DocsIn, "document"), k.data.DocsOut, k.droppedWords(), s)
		}
	}
	return nil
}

func (k *keeper) droppedWords() string {
	var words []string
	for f := corpus.Kept + 1; f < corpus.Fates; f++ {
		if n := k.fates[f]; n > 0 {
			words = append(words, f.String()+" "+strconv.FormatInt(n, 10))
		}
	}
	if words == nil {
		return "none"
	}
	return strings.Join(words, ", ")
}
