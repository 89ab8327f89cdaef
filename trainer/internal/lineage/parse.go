package lineage

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrRecord is wrapped by every error about a record that cannot be read.
var ErrRecord = errors.New("invalid lineage record")

// Limits of what is read.
const (
	maxRecord    = 8 << 20 // bytes
	maxArtifacts = 20_000  // inputs, and outputs
	maxName      = 4096    // bytes of a name or URI
)

// Parse reads one record.
func Parse(r io.Reader) (*Record, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxRecord+1))
	if err != nil {
		return nil, fmt.Errorf("read lineage record: %w", err)
	}
	if len(b) > maxRecord {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrRecord, maxRecord)
	}
	var s statement
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	def, run := s.Predicate.BuildDefinition, s.Predicate.RunDetails
	for _, f := range []struct{ name, got, want string }{
		{"_type", s.Type, StatementType}, {"predicateType", s.PredicateType, PredicateType},
		{"buildType", def.BuildType, BuildType}, {"builder.id", run.Builder.ID, BuilderID},
	} {
		if f.got != f.want {
			return nil, fmt.Errorf("%w: %s is %.100q, want %q", ErrRecord, f.name, f.got, f.want)
		}
	}
	if !stageName(def.ExternalParameters.Stage) {
		return nil, fmt.Errorf("%w: stage is %.100q, want a word of lower-case letters", ErrRecord, def.ExternalParameters.Stage)
	}
	runID, found := strings.CutSuffix(run.Metadata.InvocationID, "/"+def.ExternalParameters.Stage)
	if !found || runID == "" || len(runID) > maxName {
		return nil, fmt.Errorf("%w: invocationId is %.100q, want <run>/%s", ErrRecord, run.Metadata.InvocationID, def.ExternalParameters.Stage)
	}
	rec := &Record{
		Stage: def.ExternalParameters.Stage, RunID: runID, Outcome: run.Metadata.Outcome,
		Parameters: def.ExternalParameters.Parameters, Seeds: def.InternalParameters.Seeds,
		Code: def.InternalParameters.Code, Host: def.InternalParameters.Host,
		Started: run.Metadata.StartedOn, Finished: run.Metadata.FinishedOn,
		Waiting: run.Metadata.Waiting, Working: run.Metadata.Working,
	}
	if len(s.Subject) == 0 {
		return nil, fmt.Errorf("%w: it has no subject", ErrRecord)
	}
	if rec.Outputs, err = artifacts("subject", s.Subject); err != nil {
		return nil, err
	}
	if rec.Inputs, err = artifacts("resolvedDependencies", def.ResolvedDependencies); err != nil {
		return nil, err
	}
	return rec, nil
}

func stageName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && c != '-' {
			return false
		}
	}
	return true
}

func artifacts(field string, ds []descriptor) ([]Artifact, error) {
	if len(ds) > maxArtifacts {
		return nil, fmt.Errorf("%w: %s has %d entries, at most %d", ErrRecord, field, len(ds), maxArtifacts)
	}
	out := make([]Artifact, len(ds))
	for i, d := range ds {
		a := Artifact{Name: d.Name, URI: d.URI, Kind: d.Annotations[kindKey], SHA256: d.Digest["sha256"], Commit: d.Digest["gitCommit"]}
		switch {
		case a.Name == "" || len(a.Name) > maxName || len(a.URI) > maxName:
			return nil, fmt.Errorf("%w: %s %d has a name of %d and a URI of %d bytes, want 1 to %d and 0 to %d", ErrRecord, field, i, len(a.Name), len(a.URI), maxName, maxName)
		case a.SHA256 == "" && a.Commit == "":
			return nil, fmt.Errorf("%w: %s %.100q has neither sha256 nor gitCommit", ErrRecord, field, a.Name)
		case a.SHA256 != "" && !isHex(a.SHA256, 64):
			return nil, fmt.Errorf("%w: %s %.100q has sha256 %.100q, want 64 hex digits", ErrRecord, field, a.Name, a.SHA256)
		case a.Commit != "" && !isHex(a.Commit, 40) && !isHex(a.Commit, 64):
			return nil, fmt.Errorf("%w: %s %.100q has gitCommit %.100q, want 40 or 64 hex digits", ErrRecord, field, a.Name, a.Commit)
		}
		out[i] = a
	}
	return out, nil
}

func isHex(s string, n int) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == n && s == strings.ToLower(s)
}
