package pushevent

import (
	"context"
	"fmt"
	"io"
	"net/url"

	git "github.com/go-git/go-git/v5"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Teller makes events of updates of one repository, and sends them.
type Teller struct {
	Repository *git.Repository
	Origin     Origin
	Secret     []byte
	Random     io.Reader // of the numbers of deliveries
	Sender     Sender
	URL        *url.URL
}

// Told is what became of one update.
type Told struct {
	Update
	Forge    string  `json:"forge"`
	Event    string  `json:"event"`
	Delivery string  `json:"delivery"`
	Commits  int     `json:"commits"` // in all
	Listed   int     `json:"listed"`  // in the event
	Answer   *Answer `json:"answer,omitempty"`
}

// Make makes the event of an update; a number of its own unless id is given.
func (t Teller) Make(ctx context.Context, u Update, id string) (Delivery, Told, error) {
	told := Told{Update: u, Forge: string(t.Origin.Forge)}
	change, err := Read(ctx, t.Repository, u, limit(t.Origin.Forge))
	if err != nil {
		return Delivery{}, told, err
	}
	if id == "" {
		if id, err = NewID(t.Random); err != nil {
			return Delivery{}, told, err
		}
	}
	d, err := New(t.Origin, change, t.Secret, id)
	told.Event, told.Delivery, told.Commits, told.Listed = d.Event, d.ID, change.Total, len(change.Commits)
	return d, told, err
}

// Tell makes the event of an update and sends it.
func (t Teller) Tell(ctx context.Context, u Update, id string) (Told, error) {
	d, told, err := t.Make(ctx, u, id)
	if err != nil {
		return told, err
	}
	answer, err := t.Sender.Send(ctx, t.URL, d)
	told.Answer = &answer
	return told, err
}

// TellAll tells of one update after the other, and of no more once nobody takes them.
// What was told of is returned beside the error.
func (t Teller) TellAll(ctx context.Context, updates []Update, id string) ([]Told, error) {
	told := []Told{}
	var first error
	for i, u := range updates {
		one, err := t.Tell(ctx, u, id)
		if err == nil {
			told = append(told, one)
			continue
		}
		err = fmt.Errorf("%s: %w", u.Ref, err)
		if exitcode.Of(err) == exitcode.IO && i+1 < len(updates) {
			return told, fmt.Errorf("%w (%d more were not sent)", err, len(updates)-i-1)
		}
		if first == nil {
			first = err
		}
	}
	return told, first
}
