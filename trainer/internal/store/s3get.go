package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// enoughProgress is how many bytes a broken download must have brought to get
// its full number of attempts back.
const enoughProgress = 8 << 20

// Get streams the object, continues where a connection broke, and compares
// the digest at the end. An object that was uploaded by another program has no
// digest on record; then only the size is checked.
func (s *s3Store) Get(ctx context.Context, key string, w io.Writer) (Info, error) {
	if err := ValidateKey(key); err != nil {
		return Info{}, err
	}
	d := &download{store: s, key: key, w: w, hash: sha256.New()}
	info, err := d.run(ctx)
	if err != nil {
		return Info{}, s.fail("get", key, err)
	}
	return info, nil
}

// download is one Get over as many connections as it takes.
type download struct {
	store *s3Store
	key   string
	w     io.Writer
	hash  hash.Hash
	done  int64 // bytes written to w
	info  Info  // from the first answer
}

func (d *download) run(ctx context.Context) (Info, error) {
	delays := d.store.opts.Delays
	attempt, mark := 0, int64(0)
	for {
		err := d.stream(ctx)
		if err == nil {
			break
		}
		if d.done-mark >= enoughProgress {
			attempt, mark = 0, d.done
		}
		var broken *brokenBody
		if !errors.As(err, &broken) || attempt >= len(delays) || ctx.Err() != nil {
			return Info{}, err
		}
		if err := d.store.opts.Sleep(ctx, delays[attempt]); err != nil {
			return Info{}, err
		}
		attempt++
	}
	sum := hex.EncodeToString(d.hash.Sum(nil))
	if d.info.SHA256 != "" && d.info.SHA256 != sum {
		return Info{}, fmt.Errorf("%w: downloaded %d bytes with sha256 %s, recorded %s: upload it again", ErrIntegrity, d.done, sum, d.info.SHA256)
	}
	d.info.SHA256 = sum
	return d.info, nil
}

// brokenBody is a body that ended early; what is missing can be asked for.
type brokenBody struct{ err error }

func (b *brokenBody) Error() string { return b.err.Error() }
func (b *brokenBody) Unwrap() error { return b.err }

// stream asks for what is missing and copies as much as arrives.
func (d *download) stream(ctx context.Context) error {
	in := &s3.GetObjectInput{Bucket: &d.store.bucket, Key: d.store.name(d.key)}
	if d.done > 0 {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", d.done))
		in.IfMatch = aws.String(d.info.ETag)
	}
	out, err := d.store.client.GetObject(ctx, in)
	if err != nil {
		if d.done > 0 && httpStatus(err) == http.StatusPreconditionFailed {
			return fmt.Errorf("%w: it was replaced after %d of %d bytes: get it again", ErrIntegrity, d.done, d.info.Size)
		}
		return err
	}
	defer out.Body.Close()
	if err := d.begin(out); err != nil {
		return err
	}
	return d.copy(ctx, out.Body)
}

// begin checks that the answer continues what is there.
func (d *download) begin(out *s3.GetObjectOutput) error {
	first, _, err := describe(d.key, aws.ToInt64(out.ContentLength), out.ETag, out.Metadata)
	if err != nil {
		return err
	}
	if d.done == 0 {
		if out.ContentLength == nil {
			return errors.New("the answer has no Content-Length: a truncated object could not be told from a whole one")
		}
		d.info = first
		return nil
	}
	if first.ETag != d.info.ETag {
		return fmt.Errorf("%w: it was replaced after %d of %d bytes: get it again", ErrIntegrity, d.done, d.info.Size)
	}
	if r := aws.ToString(out.ContentRange); r != "" {
		if !strings.HasPrefix(r, fmt.Sprintf("bytes %d-", d.done)) {
			return fmt.Errorf("%w: asked for the bytes from %d, got %q", ErrIntegrity, d.done, r)
		}
		return nil
	}
	// The server ignored the range and sends everything: skip what is there.
	if _, err := io.CopyN(io.Discard, out.Body, d.done); err != nil {
		return &brokenBody{err}
	}
	return nil
}

func (d *download) copy(ctx context.Context, body io.Reader) error {
	buf := make([]byte, 256<<10)
	for {
		n, readErr := body.Read(buf)
		if n > 0 {
			d.hash.Write(buf[:n])
			if _, err := d.w.Write(buf[:n]); err != nil {
				return fmt.Errorf("write what was downloaded: %w", err)
			}
			d.done += int64(n)
		}
		switch {
		case d.done > d.info.Size:
			return fmt.Errorf("%w: got %d bytes, the server announced %d", ErrIntegrity, d.done, d.info.Size)
		case readErr == io.EOF && d.done < d.info.Size:
			return &brokenBody{fmt.Errorf("%w after %d of %d bytes", io.ErrUnexpectedEOF, d.done, d.info.Size)}
		case readErr == io.EOF:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case readErr != nil && d.done == d.info.Size:
			return fmt.Errorf("%w: %w", ErrIntegrity, readErr) // a checksum of the SDK
		case readErr != nil:
			return &brokenBody{fmt.Errorf("after %d of %d bytes: %w", d.done, d.info.Size, readErr)}
		}
	}
}
