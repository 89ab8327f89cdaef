package lineage

import (
	"context"
	"fmt"
	"os"
)

// Kinds of artifact. They say how a digest is checked and where the trail ends:
// a corpus, an image or a commit is not made by a stage.
const (
	KindFile   = "file"   // any file of the run
	KindData   = "data"   // prepared data
	KindCorpus = "corpus" // raw text from outside
	KindConfig = "config" // a policy or parameter file from outside
	KindModel  = "model"  // a model by its content digest
	KindImage  = "image"  // the container image of the code
	KindSource = "source" // a commit
)

// Artifact is something with a digest. Name is a slash-separated path inside the
// run directory for what the run made; URI says where other things are.
type Artifact struct {
	Name   string
	URI    string
	Kind   string
	SHA256 string // hex
	Commit string // git commit in hex, for KindSource only
}

// External says that no stage made the artifact.
func (a Artifact) External() bool {
	switch a.Kind {
	case KindCorpus, KindConfig, KindImage, KindSource:
		return true
	}
	return false
}

// ID identifies the content: the digest, or the commit.
func (a Artifact) ID() string {
	if a.SHA256 == "" {
		return a.Commit
	}
	return a.SHA256
}

// HashFile returns the SHA-256 of a file in hex, in constant memory.
func HashFile(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, err := hashReader(ctx, f)
	if err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return sum, nil
}
