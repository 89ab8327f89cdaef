package queue

import (
	"net/http"
	"time"
)

// stillness is how long a queue that is well may be silent: a watch, a backoff and
// the requests between them are shorter.
const stillness = 3 * time.Minute

// Health answers probes: /healthz says whether the queue moves at all, /readyz whether
// it could do its work the last time.
func (q *Queue) Health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		say(w, q.moves(), "the queue hangs")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		say(w, q.moves() && q.pulse.works.Load(), "the queue could not do its work: see its log")
	})
	return mux
}

func say(w http.ResponseWriter, well bool, otherwise string) {
	if !well {
		http.Error(w, otherwise, http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

func (q *Queue) moves() bool {
	last := q.pulse.last.Load()
	return last != 0 && q.Now().Sub(time.Unix(0, last)) < stillness
}
