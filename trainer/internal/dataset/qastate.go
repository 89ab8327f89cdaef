package dataset

import (
	"encoding/json"
	"fmt"
)

// qaState is where a QABatches stands.
type qaState struct {
	Stream []byte `json:"stream"` // at the beginning of the epoch
	Next   int    `json:"next"`   // pairs of the epoch that were used
	Pairs  int    `json:"pairs"`
}

// State returns the place in the epoch and what shuffled it.
func (x *QABatches) State() ([]byte, error) {
	return json.Marshal(qaState{Stream: x.start, Next: x.next, Pairs: len(x.order)})
}

// SetState continues where State was taken. A state of another number of pairs is
// an error: the order would not be the same.
func (x *QABatches) SetState(raw []byte) error {
	var s qaState
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("state of question-answer data: %w", err)
	}
	if s.Pairs != len(x.order) || s.Next < 0 || s.Next > s.Pairs {
		return fmt.Errorf("state of question-answer data: pair %d of %d, the data has %d pairs: resume with the data that training began with", s.Next, s.Pairs, len(x.order))
	}
	before, err := x.stream.State()
	if err != nil {
		return err
	}
	if err := x.stream.SetState(s.Stream); err != nil {
		return fmt.Errorf("state of question-answer data: %w", err)
	}
	if err := x.shuffle(); err != nil {
		_ = x.stream.SetState(before)
		return err
	}
	x.next = s.Next
	return nil
}
