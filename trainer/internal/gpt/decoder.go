package gpt

import (
	"errors"
	"fmt"
	"math"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// ErrContextFull is returned when a decoder is fed past the model's block size.
var ErrContextFull = errors.New("context is full")

// decodeRows is the number of tokens of a prompt that run through the layers
// together.
const decodeRows = 64

// Decoder feeds one sequence to a model token by token, keeping keys and values.
// It is not safe for concurrent use; decoders of one model may run side by side
// when each has a pool of its own.
type Decoder struct {
	m    *Model
	set  *kernel.Set
	pool *par.Pool
	mul  *kernel.Multiplier
	n    int // tokens in the cache

	cache  [][]float32 // for each layer (block, 3C): queries, keys and values
	x      []float32   // (decodeRows, C)
	norm   []float32   // (decodeRows, C)
	att    []float32   // (decodeRows, C)
	branch []float32   // (decodeRows, C)
	inner  []float32   // (decodeRows, Inner)
	stats  []float32   // (decodeRows, 2)
	scores []float32   // (H, block)
	logits []float32   // (V)

	layer, rows int
	row         rowProduct
	attend      func(worker, task int)
	rowColumns  func(worker, task int)
	rowWords    func(worker, task int)
}

// NewDecoder returns an empty decoder with a cache of the model's block size.
func NewDecoder(m *Model, pool *par.Pool, set *kernel.Set) *Decoder {
	cfg := m.cfg
	c := cfg.Channels
	d := &Decoder{
		m: m, set: set, pool: pool, mul: kernel.NewMultiplier(set, pool),
		x: Alloc(decodeRows * c), norm: Alloc(decodeRows * c), att: Alloc(decodeRows * c), branch: Alloc(decodeRows * c),
		inner: Alloc(decodeRows * cfg.Inner), stats: Alloc(2 * decodeRows),
		scores: Alloc(cfg.Heads * cfg.BlockSize), logits: Alloc(cfg.VocabSize),
	}
	for range cfg.Layers {
		d.cache = append(d.cache, Alloc(cfg.BlockSize*3*c))
	}
	d.attend, d.rowColumns, d.rowWords = d.attendHead, d.multiplyColumns, d.multiplyWords
	return d
}

// Reset forgets the sequence.
func (d *Decoder) Reset() { d.n = 0 }

// Len returns the number of tokens in the cache.
func (d *Decoder) Len() int { return d.n }

// Feed appends tokens and returns the logits (V) after the last one, valid until
// the next call. It returns ErrContextFull, and feeds nothing, when the tokens
// do not fit into the block.
func (d *Decoder) Feed(tokens []int32) ([]float32, error) {
	cfg := d.m.cfg
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%w: no token to feed", ErrBatch)
	}
	if d.n+len(tokens) > cfg.BlockSize {
		return nil, fmt.Errorf("%w: %d tokens and %d more, the block has %d", ErrContextFull, d.n, len(tokens), cfg.BlockSize)
	}
	if err := (Batch{B: 1, T: len(tokens), Inputs: tokens}).validate(cfg, 1, cfg.BlockSize, false); err != nil {
		return nil, err
	}
	for len(tokens) > 0 {
		n := min(decodeRows, len(tokens))
		d.feed(tokens[:n])
		tokens = tokens[n:]
	}
	c := cfg.Channels
	d.headRow(rowsOf(d.norm, d.rows-1, d.rows, c))
	return d.logits, nil
}

// feed runs up to decodeRows tokens through the layers.
func (d *Decoder) feed(tokens []int32) {
	cfg, c := d.m.cfg, d.m.cfg.Channels
	d.rows = len(tokens)
	n := d.rows * c
	for i, id := range tokens {
		pos := d.n + i
		d.set.Add(rowsOf(d.x, i, i+1, c), rowsOf(d.m.params[wte].Data, int(id), int(id)+1, c), rowsOf(d.m.params[wpe].Data, pos, pos+1, c))
	}
	x, norm, branch, stats := d.x[:n], d.norm[:n], d.branch[:n], d.stats[:2*d.rows]
	inner := d.inner[:d.rows*cfg.Inner]
	for l := range cfg.Layers {
		d.layer = l
		t := d.m.layer(l)
		d.set.LayerNorm(norm, x, t[ln1Gain].Data, t[ln1Bias].Data, stats, cfg.Epsilon)
		d.linear(rowsOf(d.cache[l], d.n, d.n+d.rows, 3*c), norm, t[attnW], t[attnB])
		d.pool.Run(cfg.Heads, d.attend)
		d.linear(branch, d.att, t[projW], t[projB])
		d.set.AddLayerNorm(norm, x, x, branch, t[ln2Gain].Data, t[ln2Bias].Data, stats, cfg.Epsilon)
		d.linear(inner, norm, t[fcW], t[fcB])
		d.set.GELU(inner, inner, cfg.Activation == GELUErf)
		d.linear(branch, inner, t[fcProjW], t[fcProjB])
		d.set.Add(x, x, branch)
	}
	gain, bias := d.m.finalNorm()
	d.set.LayerNorm(norm, x, gain.Data, bias.Data, stats, cfg.Epsilon)
	d.n += d.rows
}

func (d *Decoder) linear(out, x []float32, w, b Param) {
	in, width := w.Shape[0], w.Shape[1]
	if d.rows == 1 {
		d.linearRow(out[:width], x[:in], w, b)
		return
	}
	d.mul.Run(kernel.Product{M: d.rows, N: width, K: in, A: x, LDA: in, B: w.Data, LDB: width, C: out, LDC: width, Bias: b.Data})
}

// attendHead computes one head's output for the new tokens over the cache.
func (d *Decoder) attendHead(_, h int) {
	cfg, c, hs := d.m.cfg, d.m.cfg.Channels, d.m.cfg.HeadSize()
	cache := d.cache[d.layer]
	scale := float32(1 / math.Sqrt(float64(hs)))
	for i := range d.rows {
		last := d.n + i
		q := cache[last*3*c+h*hs:][:hs]
		scores := d.scores[h*cfg.BlockSize:][:last+1]
		for j := range scores {
			scores[j] = d.set.Dot(q, cache[(j*3+1)*c+h*hs:][:hs])
		}
		d.set.Softmax(scores, scores, scale, 1)
		out := d.att[i*c+h*hs:][:hs]
		clear(out)
		for j, p := range scores {
			d.set.AXPY(out, cache[(j*3+2)*c+h*hs:][:hs], p)
		}
	}
}
