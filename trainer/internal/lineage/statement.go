package lineage

import (
	"encoding/json"
	"time"
)

// The identifiers of the public forms that a record has.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://slsa.dev/provenance/v1"
	BuildType     = "https://github.com/trainyard/trainyard/stage@v1"
	BuilderID     = "https://github.com/trainyard/trainyard/trainer"
)

// statement is an in-toto Statement v1 with an SLSA provenance v1 predicate.
// Fields of our own have the vendor prefix that SLSA asks extensions to have.
type statement struct {
	Type          string       `json:"_type"`
	Subject       []descriptor `json:"subject"`
	PredicateType string       `json:"predicateType"`
	Predicate     predicate    `json:"predicate"`
}

type descriptor struct {
	Name        string            `json:"name,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Digest      map[string]string `json:"digest"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type predicate struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string       `json:"buildType"`
	ExternalParameters   external     `json:"externalParameters"`
	InternalParameters   internal     `json:"internalParameters"`
	ResolvedDependencies []descriptor `json:"resolvedDependencies"`
}

type external struct {
	Stage      string            `json:"stage"`
	Parameters map[string]string `json:"parameters"`
}

type internal struct {
	Seeds map[string]uint64 `json:"seeds"`
	Host  Host              `json:"host"`
	Code  Code              `json:"code"`
}

type runDetails struct {
	Builder  builder  `json:"builder"`
	Metadata metadata `json:"metadata"`
}

type builder struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version,omitempty"`
}

type metadata struct {
	InvocationID string    `json:"invocationId"`
	StartedOn    time.Time `json:"startedOn"`
	FinishedOn   time.Time `json:"finishedOn"`
	Outcome      string    `json:"trainyard_outcome"`
	Waiting      float64   `json:"trainyard_waitingSeconds"`
	Working      float64   `json:"trainyard_workingSeconds"`
}

const kindKey = "trainyard_kind"

func toDescriptor(a Artifact) descriptor {
	d := descriptor{Name: a.Name, URI: a.URI, Digest: map[string]string{}, Annotations: map[string]string{kindKey: a.Kind}}
	if a.SHA256 != "" {
		d.Digest["sha256"] = a.SHA256
	}
	if a.Commit != "" {
		d.Digest["gitCommit"] = a.Commit
	}
	return d
}

func toDescriptors(as []Artifact) []descriptor {
	out := make([]descriptor, len(as))
	for i, a := range as {
		out[i] = toDescriptor(a)
	}
	return out
}

// MarshalJSON writes the record as a statement.
func (r Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(statement{
		Type: StatementType, Subject: toDescriptors(r.Outputs), PredicateType: PredicateType,
		Predicate: predicate{
			BuildDefinition: buildDefinition{
				BuildType:            BuildType,
				ExternalParameters:   external{r.Stage, r.Parameters},
				InternalParameters:   internal{r.Seeds, r.Host, r.Code},
				ResolvedDependencies: toDescriptors(r.Inputs),
			},
			RunDetails: runDetails{
				Builder: builder{ID: BuilderID, Version: map[string]string{"trainer": r.Code.Version, "go": r.Host.Go}},
				Metadata: metadata{
					InvocationID: r.RunID + "/" + r.Stage, StartedOn: r.Started.UTC(), FinishedOn: r.Finished.UTC(),
					Outcome: r.Outcome, Waiting: r.Waiting, Working: r.Working,
				},
			},
		},
	})
}
