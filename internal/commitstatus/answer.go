package commitstatus

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RefusedError says that a forge does not take a status, and would not if it were
// asked again.
type RefusedError struct {
	Forge  string
	Code   int // of HTTP, 0 where the forge was not asked
	Reason string
	Remedy string
}

// Error says what to do about it.
func (e *RefusedError) Error() string {
	text := e.Forge + " refused the commit status"
	if e.Code != 0 {
		text += fmt.Sprintf(" (%d)", e.Code)
	}
	return text + ": " + e.Reason + ": " + e.Remedy
}

// LaterError says that a forge could not be told now.
type LaterError struct {
	Forge  string
	Reason string
	// After is how long to wait before asking it anything; 0 where the forge did not
	// say, and only this status is to wait.
	After time.Duration
}

func (e *LaterError) Error() string {
	text := e.Forge + " could not take the commit status: " + e.Reason
	if e.After > 0 {
		text += ": again in " + e.After.Round(time.Second).String()
	}
	return text
}

const (
	// maxWait is how long a forge may make us wait: GitHub's limits are by the hour.
	maxWait = time.Hour
	// limitWait is what GitHub asks for where it limits and does not say for how long.
	limitWait = time.Minute
)

// judge says what an answer means: nil for "done".
func (c *Client) judge(code int, h http.Header, message string) error {
	d := c.dialect
	if code == http.StatusCreated || d.settled(code, message) {
		return nil
	}
	wait, said := retryAfter(h, c.now())
	limited := code == http.StatusTooManyRequests ||
		code == http.StatusForbidden && (said || strings.Contains(strings.ToLower(message), "rate limit"))
	reason := message
	if reason == "" {
		reason = strings.ToLower(http.StatusText(code))
	}
	switch {
	case limited && !said:
		return &LaterError{Forge: d.name, Reason: fmt.Sprintf("rate limit (%d): %s", code, reason), After: limitWait}
	case limited:
		return &LaterError{Forge: d.name, Reason: fmt.Sprintf("rate limit (%d): %s", code, reason), After: wait}
	case code >= 500, slices.Contains([]int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly}, code):
		return &LaterError{Forge: d.name, Reason: fmt.Sprintf("%d: %s", code, reason), After: wait}
	}
	refused := &RefusedError{Forge: d.name, Code: code, Reason: reason}
	where := "whether " + c.base.String() + " is the address of its API"
	switch {
	case code == http.StatusUnauthorized:
		refused.Remedy = "the token is not valid, or no longer: put a new one into " + c.tokenFile
	case code == http.StatusForbidden:
		refused.Remedy = "the token needs " + d.permission
	case code == http.StatusNotFound:
		refused.Remedy = "see that the repository and the commit exist, that the token may see them (it needs " + d.permission + "), and " + where
	case code < 400:
		refused.Remedy = "nothing was created: see " + where
	default:
		refused.Remedy = "see what " + d.name + " says, and " + where
	}
	return refused
}

// retryAfter is how long the headers of an answer ask to wait, and whether they do:
// Retry-After, or the end of a limit that is used up.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	within := func(d time.Duration) time.Duration { return min(max(d, time.Second), maxWait) }
	if text := strings.TrimSpace(h.Get("Retry-After")); text != "" {
		if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
			return within(time.Duration(seconds) * time.Second), true
		}
		if at, err := http.ParseTime(text); err == nil {
			return within(at.Sub(now)), true
		}
	}
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
		if h.Get(prefix+"Remaining") != "0" {
			continue
		}
		if at, err := strconv.ParseInt(h.Get(prefix+"Reset"), 10, 64); err == nil && at > 0 && at < 1<<40 {
			return within(time.Unix(at, 0).Sub(now)), true
		}
	}
	return 0, false
}

// messageOf finds what a forge says in the body of an answer. GitLab's message can be
// an object.
func messageOf(body []byte, contentType string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		if len(body) == 0 {
			return ""
		}
		return "the answer is no JSON (" + Cut(contentType, 60) + ")"
	}
	var parts []string
	for _, name := range []string{"message", "error", "error_description", "errors"} {
		raw, ok := fields[name]
		if !ok || string(raw) == "null" {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		parts = append(parts, text)
	}
	return Cut(strings.Join(parts, " "), 300)
}
