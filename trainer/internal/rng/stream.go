package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Names of the streams that a training run draws from.
const (
	Data    = "data"
	Dropout = "dropout"
	Eval    = "eval"
	Init    = "init"
	Sample  = "sample"
)

// Stream is one named stream. It is not safe for concurrent use.
type Stream struct {
	pcg *rand.PCG
	r   *rand.Rand
}

// New returns the stream called name of the run that has this seed. Equal
// arguments give equal streams on every machine.
func New(seed uint64, name string) *Stream {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	sum := sha256.Sum256(append(b[:], name...))
	pcg := rand.NewPCG(binary.LittleEndian.Uint64(sum[0:8]), binary.LittleEndian.Uint64(sum[8:16]))
	return &Stream{pcg: pcg, r: rand.New(pcg)}
}

// Uint64 returns 64 uniform bits.
func (s *Stream) Uint64() uint64 { return s.pcg.Uint64() }

// Uint32 returns 32 uniform bits.
func (s *Stream) Uint32() uint32 { return s.r.Uint32() }

// Float64 returns a uniform number in [0, 1).
func (s *Stream) Float64() float64 { return s.r.Float64() }

// Intn returns a uniform integer in [0, n). It panics for n <= 0.
func (s *Stream) Intn(n int) int { return s.r.IntN(n) }

// NormFloat64 returns a standard normal number.
func (s *Stream) NormFloat64() float64 { return s.r.NormFloat64() }

// Shuffle permutes n elements through swap.
func (s *Stream) Shuffle(n int, swap func(i, j int)) { s.r.Shuffle(n, swap) }

// State returns what SetState needs to go on from here.
func (s *Stream) State() ([]byte, error) {
	b, err := s.pcg.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("read random stream state: %w", err)
	}
	return b, nil
}

// SetState continues a stream where State was taken.
func (s *Stream) SetState(b []byte) error {
	if err := s.pcg.UnmarshalBinary(b); err != nil {
		return fmt.Errorf("restore random stream state: %w", err)
	}
	return nil
}
