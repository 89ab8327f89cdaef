package pushevent

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// maxSecret bounds a file that may not be the one that was meant.
const maxSecret = 64 << 10

// ReadSecret reads a file with the secret that forge and listener share. One line
// break at its end is an editor's, and no part of it.
func ReadSecret(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	defer f.Close()
	secret, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	secret = bytes.TrimSuffix(bytes.TrimSuffix(secret, []byte("\n")), []byte("\r"))
	switch {
	case len(secret) == 0:
		err = errors.New("it is empty: a listener must not take events without one")
	case len(secret) > maxSecret:
		err = fmt.Errorf("it has more than %d bytes", maxSecret)
	case bytes.ContainsAny(secret, "\x00\r\n"):
		err = errors.New("it has more than one line, or no text")
	}
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "secret %s: %w", file, err)
	}
	return secret, nil
}

// signature is the HMAC of a body in hexadecimal.
func signature(algorithm func() hash.Hash, secret, body []byte) string {
	mac := hmac.New(algorithm, secret)
	mac.Write(body) // a hash takes everything
	return hex.EncodeToString(mac.Sum(nil))
}

// sha256Of is the signature that listeners check.
func sha256Of(secret, body []byte) string { return signature(sha256.New, secret, body) }

// sha1Of is the one of old, which forges go on sending beside it.
func sha1Of(secret, body []byte) string { return signature(sha1.New, secret, body) }
