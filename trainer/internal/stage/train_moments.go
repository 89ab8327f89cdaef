package stage

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/optim"
	"github.com/trainyard/trainyard/trainer/internal/safetensors"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// momentsFile holds AdamW's moments: tensors m.NAME and v.NAME of every
// parameter, in F32, and the number of updates in its metadata.
const momentsFile = "state.safetensors"

const updatesKey = "updates"

func saveMoments(path string, params []gpt.Param, opt *optim.AdamW) error {
	tensors := make([]safetensors.Tensor, 0, 2*len(params))
	for i, p := range params {
		m, v := opt.Moments(i)
		tensors = append(tensors,
			safetensors.Tensor{Name: "m." + p.Name, DType: safetensors.F32, Shape: p.Shape, Data: m},
			safetensors.Tensor{Name: "v." + p.Name, DType: safetensors.F32, Shape: p.Shape, Data: v})
	}
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		return safetensors.Write(w, map[string]string{updatesKey: strconv.FormatInt(opt.Steps(), 10)}, tensors)
	})
}

func loadMoments(path string, params []gpt.Param, opt *optim.AdamW) (err error) {
	r, err := safetensors.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", train.ErrCheckpoint, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for i, p := range params {
		m, v := opt.Moments(i)
		if err := errors.Join(r.ReadFloat32("m."+p.Name, m), r.ReadFloat32("v."+p.Name, v)); err != nil {
			return fmt.Errorf("%w: %s: %w", train.ErrCheckpoint, path, err)
		}
	}
	n, err := strconv.ParseInt(r.Metadata()[updatesKey], 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%w: %s: %s is %q", train.ErrCheckpoint, path, updatesKey, r.Metadata()[updatesKey])
	}
	opt.SetSteps(n)
	return nil
}

// finite names the first weight that is none.
func finite(params []gpt.Param) error {
	for _, p := range params {
		for i, x := range p.Data {
			if x-x != 0 { // NaN and the infinities
				return fmt.Errorf("%s[%d] is %v", p.Name, i, x)
			}
		}
	}
	return nil
}
