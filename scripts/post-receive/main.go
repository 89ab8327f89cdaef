// Command post-receive is the hook of the demo's git server: it tells the listener of
// what was pushed, as GitHub would. The server's image has no shell that could start
// yard push-event, so this is a program of its own that does the same.
//
// Its settings are environment variables: PUSH_EVENT_URL, PUSH_EVENT_REPOSITORY,
// PUSH_EVENT_CLONE_URL and PUSH_EVENT_SECRET_FILE.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/trainyard/trainyard/internal/pause"
	"github.com/trainyard/trainyard/internal/pushevent"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// limit is how long a push may wait for its events, attempt how long for one answer.
const (
	limit   = 30 * time.Second
	attempt = 5 * time.Second
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	// The push has succeeded already, whatever becomes of this: git only shows to
	// who pushes what is printed here.
	tell(ctx, os.Stdin, os.Stderr, os.Getenv)
}

func tell(ctx context.Context, in io.Reader, out io.Writer, getenv func(string) string) {
	told, err := send(ctx, in, getenv)
	for _, one := range told {
		fmt.Fprintf(out, "the listener was told of %s (delivery %s)\n", one.Ref, one.Delivery)
	}
	if err != nil {
		fmt.Fprintf(out, "the push is in, but no run starts for it: %v\n", err)
	}
}

func send(ctx context.Context, in io.Reader, getenv func(string) string) ([]pushevent.Told, error) {
	updates, err := pushevent.ReadUpdates(in)
	if err != nil {
		return nil, err
	}
	t := pushevent.Teller{
		Origin: pushevent.Origin{
			Forge: pushrun.GitHub, Repository: getenv("PUSH_EVENT_REPOSITORY"), CloneURL: getenv("PUSH_EVENT_CLONE_URL"), Sender: "demo",
		},
		Random: rand.Reader,
		Sender: pushevent.Sender{Client: pushevent.NewClient(attempt, nil), Attempts: 4, Pause: 500 * time.Millisecond, Sleep: pause.For},
	}
	if t.URL, err = pushevent.Address(getenv("PUSH_EVENT_URL")); err != nil {
		return nil, err
	}
	if t.Secret, err = pushevent.ReadSecret(getenv("PUSH_EVENT_SECRET_FILE")); err != nil {
		return nil, err
	}
	if t.Repository, err = pushevent.Open("."); err != nil { // where git starts its hooks
		return nil, err
	}
	return t.TellAll(ctx, updates, "")
}
