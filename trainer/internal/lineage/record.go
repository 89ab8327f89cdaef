package lineage

import "time"

// Outcomes of a stage.
const (
	Succeeded = "succeeded"
	BlockedBy = "blocked" // the gate said no
	Failed    = "failed"
)

// Record says what one stage did, of what, with what, when and where.
type Record struct {
	Stage      string
	RunID      string
	Outcome    string
	Inputs     []Artifact
	Outputs    []Artifact
	Parameters map[string]string
	Seeds      map[string]uint64
	Code       Code
	Host       Host
	Started    time.Time
	Finished   time.Time
	// Waiting is how long the stage waited since the stage before it ended;
	// Working is from start to end. Both in seconds.
	Waiting, Working float64
}

// Code identifies the program.
type Code struct {
	Image      string `json:"image,omitempty"`      // by digest
	Repository string `json:"repository,omitempty"` // of the source
	Commit     string `json:"commit,omitempty"`
	Modified   bool   `json:"modified,omitempty"` // built from a changed checkout
	Binary     string `json:"binarySha256,omitempty"`
	Version    string `json:"version,omitempty"`
}

// Host is where a stage ran, as far as it decides speed and bits.
type Host struct {
	OS         string   `json:"os"`
	Arch       string   `json:"arch"`
	CPU        string   `json:"cpu"`
	Features   []string `json:"cpuFeatures,omitempty"`
	CPUs       int      `json:"cpus"`
	GOMAXPROCS int      `json:"gomaxprocs"`
	Threads    int      `json:"threads"`       // workers of the trainer
	ISA        string   `json:"isa,omitempty"` // of the kernels
	Go         string   `json:"go"`
}
