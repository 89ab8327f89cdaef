package train

import "time"

// State is what hooks see of a run. Only Stop changes it.
type State struct {
	Step  int // updates so far
	Total int // updates in all

	Loss         float64 // mean loss of the last update's targets, in nats; before the update
	LearningRate float64 // of the last update
	GradNorm     float64 // of the last update, before clipping
	StepTokens   int     // input tokens of the last update

	Evals     []Eval // all evaluations so far, oldest first
	BestLoss  float64
	BestStep  int  // 0 before there is a best: the untrained model is none
	Improved  bool // the last evaluation is the best so far
	Evaluated bool // there was an evaluation at this step
	EvalDue   bool // one follows this step, whatever hooks do

	Tokens  int64         // input tokens so far
	Elapsed time.Duration // time in the loop so far, earlier sessions included
	Session time.Duration // time in the loop since this process began it

	// StopReason is empty while the run goes on to its last step.
	StopReason string
	// Paused says that the reason lies outside of the run, so that the next
	// process may go on.
	Paused bool
}

// Eval is the mean loss over the held-out batches after Step updates.
type Eval struct {
	Step int     `json:"step"`
	Loss float64 `json:"loss"` // nats per target
}

// Stop ends the run after this step, which is still evaluated and saved. The
// first reason stays.
func (s *State) Stop(reason string) {
	if s.StopReason == "" {
		s.StopReason = reason
	}
}

// Pause ends the run like Stop, but the next process may go on with it.
func (s *State) Pause(reason string) {
	if s.StopReason == "" {
		s.StopReason, s.Paused = reason, true
	}
}

// WillEvaluate says to an OnStep hook that an evaluation follows this step.
func (s *State) WillEvaluate() bool { return s.EvalDue || s.Done() }

// EvalLoss returns the loss of the latest evaluation, if there was one.
func (s *State) EvalLoss() (loss float64, ok bool) {
	if len(s.Evals) == 0 {
		return 0, false
	}
	return s.Evals[len(s.Evals)-1].Loss, true
}

// Done says whether the run reached its last step or was told to stop early.
func (s *State) Done() bool { return s.Step >= s.Total || s.StopReason != "" }

// record takes an evaluation in.
func (s *State) record(loss float64) {
	s.Improved = s.Step > 0 && (s.BestStep == 0 || loss < s.BestLoss)
	if s.Improved {
		s.BestLoss, s.BestStep = loss, s.Step
	}
	s.Evals = append(s.Evals, Eval{s.Step, loss})
	s.Evaluated = true
}
