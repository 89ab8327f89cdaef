package commitstatus

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// maxToken is more than any forge's token has.
const maxToken = 4096

// errNoToken says that a forge is not to be told anything.
var errNoToken = errors.New("there is no token")

// token is a secret. It prints as what it is, and not what it says.
type token struct{ secret string }

func (token) String() string   { return "(token)" }
func (token) GoString() string { return "(token)" }

// mark tells whether two tokens are the same.
func (t token) mark() [sha256.Size]byte { return sha256.Sum256([]byte(t.secret)) }

// hide takes the token out of a text.
func (t token) hide(text string) string { return strings.ReplaceAll(text, t.secret, t.String()) }

// readToken reads a token each time anew, as a mounted Secret changes. What is in the
// file is in no error.
func readToken(path string) (token, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return token{}, errNoToken
	}
	if err != nil {
		return token{}, fmt.Errorf("read the token: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return token{}, fmt.Errorf("read the token: %w", err)
	}
	secret := strings.TrimSpace(string(data))
	switch {
	case secret == "":
		return token{}, errNoToken
	case len(data) > maxToken:
		return token{}, fmt.Errorf("token %s has more than %d bytes: is it the right file?", path, maxToken)
	}
	for _, c := range []byte(secret) {
		if c <= ' ' || c > '~' {
			return token{}, fmt.Errorf("token %s has blanks, line breaks or other characters that a token has not: write it as one line", path)
		}
	}
	return token{secret}, nil
}
