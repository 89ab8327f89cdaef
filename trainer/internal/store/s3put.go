package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Put reads r twice: once for the digest, which S3 wants before the body, and
// once to send it.
func (s *s3Store) Put(ctx context.Context, key string, r io.ReadSeeker) (Info, error) {
	if err := ValidateKey(key); err != nil {
		return Info{}, err
	}
	info, err := s.put(ctx, key, r)
	if err != nil {
		return Info{}, s.fail("put", key, err)
	}
	return info, nil
}

func (s *s3Store) put(ctx context.Context, key string, r io.ReadSeeker) (Info, error) {
	sum, size, err := hashFromStart(ctx, r)
	if err != nil {
		return Info{}, fmt.Errorf("read the source: %w", err)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Info{}, fmt.Errorf("rewind the source: %w", err)
	}
	id := rand.Text()
	again := sha256.New()
	sent, err := s.transfer.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket:   &s.bucket,
		Key:      s.name(key),
		Body:     io.TeeReader(&contextReader{ctx, r}, again),
		Metadata: map[string]string{metaSHA256: sum, metaWrite: id},
	}, func(o *transfermanager.Options) {
		// The reader hides its length from the transfer manager.
		o.PartSizeBytes = max(o.PartSizeBytes, size/maxParts+1)
		o.MultipartUploadThreshold = o.PartSizeBytes
	})
	if err != nil {
		// An answer that got lost may stand for an upload that arrived.
		if info, ok := s.isOurs(ctx, key, id); ok && info.Size == size {
			return info, nil
		}
		return Info{}, err
	}
	if got := hex.EncodeToString(again.Sum(nil)); got != sum {
		return Info{}, fmt.Errorf("%w: the source changed from sha256 %s to %s during the upload: put it again", ErrIntegrity, sum, got)
	}
	info, err := s.verify(ctx, key, id, sum, size)
	if errors.Is(err, ErrLost) {
		// A later Put has replaced ours, which is its right.
		return Info{Key: key, Size: size, SHA256: sum, ETag: aws.ToString(sent.ETag)}, nil
	}
	return info, err
}

// verify asks the server what it has. ErrLost: the object of another writer.
func (s *s3Store) verify(ctx context.Context, key, id, sum string, size int64) (Info, error) {
	info, gotID, err := s.head(ctx, key)
	if err != nil {
		return Info{}, fmt.Errorf("check after the upload: %w", err)
	}
	switch {
	case gotID != id && gotID != "":
		return info, fmt.Errorf("%w: another writer replaced it at once", ErrLost)
	case info.SHA256 != sum || info.Size != size:
		return Info{}, fmt.Errorf("%w: sent %d bytes with sha256 %s, the server has %d bytes and recorded %q: does a proxy in between drop x-amz-meta headers or bodies?",
			ErrIntegrity, size, sum, info.Size, info.SHA256)
	}
	return info, nil
}

// isOurs says whether the object under key was made by the write id.
func (s *s3Store) isOurs(ctx context.Context, key, id string) (Info, bool) {
	if ctx.Err() != nil {
		return Info{}, false
	}
	info, gotID, err := s.head(ctx, key)
	return info, err == nil && gotID == id
}

// PutIf is one PutObject with If-None-Match or If-Match.
func (s *s3Store) PutIf(ctx context.Context, key string, body []byte, prevETag string) (Info, error) {
	if err := ValidateKey(key); err != nil {
		return Info{}, err
	}
	info, err := s.putIf(ctx, key, body, prevETag)
	if err != nil {
		return Info{}, s.fail("conditional put", key, err)
	}
	return info, nil
}

func (s *s3Store) putIf(ctx context.Context, key string, body []byte, prevETag string) (Info, error) {
	// Some servers accept If-Match on a missing key, so look first.
	if prevETag != "" {
		current, _, err := s.head(ctx, key)
		if err = s.classifyMissing(err); err != nil {
			return Info{}, err
		}
		if current.ETag != prevETag {
			return Info{}, lost(prevETag, current.ETag)
		}
	}
	digest := sha256.Sum256(body)
	sum, id := hex.EncodeToString(digest[:]), rand.Text()
	_, err := s.client.PutObject(ctx, s.conditional(key, body, prevETag, sum, id))
	if err != nil {
		// A retry after a lost answer meets our own object: that is a win.
		if info, ok := s.isOurs(ctx, key, id); ok {
			return info, nil
		}
		if isLostRace(err) || (prevETag != "" && apiCode(err) == "NoSuchKey") {
			return Info{}, fmt.Errorf("%w: %w", ErrLost, err)
		}
		return Info{}, err
	}
	info, err := s.verify(ctx, key, id, sum, int64(len(body)))
	if err != nil {
		return Info{}, err
	}
	if err := s.proveConditions(ctx, key, body, prevETag, sum, id); err != nil {
		return Info{}, err
	}
	return info, nil
}

// classifyMissing turns "not found" into no error.
func (s *s3Store) classifyMissing(err error) error {
	if err != nil && errors.Is(s.classify(err), ErrNotFound) {
		return nil
	}
	return err
}

func (s *s3Store) conditional(key string, body []byte, prevETag, sum, id string) *s3.PutObjectInput {
	in := &s3.PutObjectInput{
		Bucket:   &s.bucket,
		Key:      s.name(key),
		Body:     bytes.NewReader(body),
		Metadata: map[string]string{metaSHA256: sum, metaWrite: id},
	}
	if prevETag == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = aws.String(prevETag)
	}
	return in
}

// proveConditions repeats the first write of its kind with a condition that
// cannot hold any more. A server that accepts it ignores conditions, and then
// no pointer is safe there. One request per process and kind.
func (s *s3Store) proveConditions(ctx context.Context, key string, body []byte, prevETag, sum, id string) error {
	proved, header := &s.createProved, "If-None-Match"
	if prevETag != "" {
		proved, header = &s.updateProved, "If-Match"
		prevETag = `"00000000000000000000000000000000"`
	}
	if proved.Load() {
		return nil
	}
	_, err := s.client.PutObject(ctx, s.conditional(key, body, prevETag, sum, id))
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s was accepted though it does not hold: use a server with conditional writes", ErrUnconditional, header)
	case isLostRace(err):
		proved.Store(true)
		return nil
	}
	return fmt.Errorf("check that the server honours %s: %w", header, err)
}

// hashFromStart returns SHA-256 and length of r.
func hashFromStart(ctx context.Context, r io.ReadSeeker) (string, int64, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	h := sha256.New()
	n, err := io.Copy(h, &contextReader{ctx, r})
	if err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}
