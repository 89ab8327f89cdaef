package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/registry"
	"github.com/trainyard/trainyard/trainer/internal/report"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// card writes the model card.
func (p *promoting) card() error {
	o := &p.opts
	return atomicfile.WriteFile(filepath.Join(o.RunDir, CardFile), func(w io.Writer) error {
		return report.WriteCard(w, report.Card{
			Name: o.Name, Digest: p.verdict.Candidate, RunID: p.id, License: o.License, Eval: p.eval, Stages: p.stages,
		})
	})
}

// extra are the files that tell about the version.
func (p *promoting) extra() []registry.File {
	o := &p.opts
	files := []registry.File{{Name: cardName, Path: filepath.Join(o.RunDir, CardFile)}}
	for _, n := range []string{EvalReportFile, GateReportFile, DataReportFile, QualityReportFile, train.HistoryName} {
		if present(filepath.Join(o.RunDir, n)) == nil {
			files = append(files, registry.File{Name: n, Path: filepath.Join(o.RunDir, n)})
		}
	}
	for _, r := range p.stages {
		n := path.Join(lineage.Dir, r.Stage+".json")
		files = append(files, registry.File{Name: n, Path: filepath.Join(o.RunDir, filepath.FromSlash(n))})
	}
	return files
}

// keep uploads what a stage made, under its digest, so that the lineage of the
// model can be checked when the run directory is gone. The model's own files go
// with the model.
func (p *promoting) keep(ctx context.Context, r *lineage.Record) error {
	for _, a := range r.Outputs {
		if a.Kind != lineage.KindData && (a.Kind != lineage.KindFile || path.Dir(a.Name) != ".") {
			continue
		}
		key := dataDir + a.SHA256
		info, err := p.opts.Store.Stat(ctx, key)
		if err == nil && info.SHA256 == a.SHA256 {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		local := filepath.Join(p.opts.RunDir, filepath.FromSlash(a.Name))
		if info, err = store.Upload(ctx, p.opts.Store, local, key); err != nil {
			return err
		}
		if info.SHA256 != a.SHA256 {
			return fmt.Errorf("%w: %s is %s, the record of %s says %s", store.ErrIntegrity, a.Name, info.SHA256, r.Stage, a.SHA256)
		}
	}
	return nil
}
