package deliveries

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"net/http"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// Delivery is one request to the listener.
type Delivery struct {
	Name   string // what it is; no two have the same
	Forge  pushrun.Forge
	Header http.Header
	Body   []byte
	// Run is what has to come of it; nil is no run. Deliveries of one push share a run.
	Run *Run
	// By is what refuses it: the name of an interceptor of the forge's own Trigger, or
	// ByListener; empty where a run comes of it.
	By string
}

// Run is what a run of a delivery has to say.
type Run struct {
	Name string
	Push pushrun.Push
}

// What refuses a delivery.
const (
	ByListener = "listener" // the listener itself: no JSON object
	BySecret   = "secret"   // the interceptors, by their names in the Triggers
	ByPush     = "push"
	ByFilter   = "filter"
)

// Secrets are what the forges sign with.
type Secrets map[pushrun.Forge]string

// Forges lists the forges of the table.
func Forges() []pushrun.Forge {
	return []pushrun.Forge{pushrun.GitHub, pushrun.GitLab, pushrun.Gitea}
}

// Sign makes a delivery one that its forge sent: with a signature of the body as it is,
// or, of GitLab, with the secret itself.
func Sign(d *Delivery, secret string) {
	if d.Forge == pushrun.GitLab {
		d.Header.Set("X-Gitlab-Token", secret)
		return
	}
	d.Header.Set("X-Hub-Signature", "sha1="+mac(sha1.New, secret, d.Body))
	d.Header.Set("X-Hub-Signature-256", "sha256="+mac(sha256.New, secret, d.Body))
}

func mac(algorithm func() hash.Hash, secret string, body []byte) string {
	m := hmac.New(algorithm, []byte(secret))
	m.Write(body) // a hash takes everything
	return hex.EncodeToString(m.Sum(nil))
}
