package times

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Pull is what a kubelet did to have an image.
type Pull struct {
	Image   string   `json:"image"`
	Present bool     `json:"present"`                    // it was on the node already
	Seconds *float64 `json:"seconds,omitempty"`          // that the pod waited for it
	Bytes   int64    `json:"compressed_bytes,omitempty"` // as the kubelet says it
}

var (
	present = regexp.MustCompile(`^Container image "(.+?)" already present on machine`)
	pulled  = regexp.MustCompile(`^Successfully pulled image "(.+?)" in (\S+?)(?: \((\S+) including waiting\))?(?:\.? Image size: (\d+) bytes\.?)?$`)
)

// parsePull reads the message of an event with the reason Pulled.
func parsePull(message string) (Pull, bool) {
	message = strings.TrimSpace(message)
	if m := present.FindStringSubmatch(message); m != nil {
		return Pull{Image: m[1], Present: true}, true
	}
	m := pulled.FindStringSubmatch(message)
	if m == nil {
		return Pull{}, false
	}
	p := Pull{Image: m[1]}
	// What the pod waited for is what counts: kubelets pull one image after another.
	for _, text := range []string{m[3], m[2]} {
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			s := d.Seconds()
			p.Seconds = &s
			break
		}
	}
	if n, err := strconv.ParseInt(m[4], 10, 64); err == nil {
		p.Bytes = n
	}
	return p, true
}
