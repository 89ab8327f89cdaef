package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Names of the object metadata that Put writes.
const (
	metaSHA256 = "sha256"   // hex, of the whole object
	metaWrite  = "write-id" // differs for every write, tells ours from another's
)

// s3Store keeps objects in a bucket of any server that speaks S3.
type s3Store struct {
	client   *s3.Client
	transfer *transfermanager.Client
	opts     Options
	bucket   string
	prefix   string // without slashes around it
	endpoint string // for messages

	// Set once the server was seen to refuse a false condition.
	createProved, updateProved atomic.Bool
}

var _ Store = (*s3Store)(nil)

func openS3(ctx context.Context, bucket, prefix string, opts Options) (Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	client, endpoint, err := newS3Client(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", bucketHint(bucket, prefix), err)
	}
	if err := checkCredentials(ctx, client); err != nil {
		return nil, fmt.Errorf("open %s at %s: %w", bucketHint(bucket, prefix), endpoint, err)
	}
	transfer := transfermanager.New(client, func(to *transfermanager.Options) {
		to.PartSizeBytes = opts.PartSize
		to.MultipartUploadThreshold = opts.PartSize
		to.Concurrency = opts.Concurrency
		// The transfer manager does not take this from the client.
		to.RequestChecksumCalculation = client.Options().RequestChecksumCalculation
		// Abort an upload even when the caller's context is cancelled, or its
		// parts stay in the bucket and cost money.
		to.FailTimeout = opts.StallTimeout
	})
	return &s3Store{client: client, transfer: transfer, opts: opts, bucket: bucket, prefix: prefix, endpoint: endpoint}, nil
}

// URL is s3://bucket/prefix.
func (s *s3Store) URL() string {
	return (&url.URL{Scheme: "s3", Host: s.bucket, Path: s.prefix}).String()
}

// String keeps a printed store from showing more than its URL.
func (s *s3Store) String() string { return s.URL() }

// GoString does the same for %#v.
func (s *s3Store) GoString() string { return s.URL() }

func (s *s3Store) name(key string) *string {
	if s.prefix == "" {
		return aws.String(key)
	}
	return aws.String(s.prefix + "/" + key)
}

// Stat asks for the headers of the object.
func (s *s3Store) Stat(ctx context.Context, key string) (Info, error) {
	if err := ValidateKey(key); err != nil {
		return Info{}, err
	}
	info, _, err := s.head(ctx, key)
	if err != nil {
		return Info{}, s.fail("stat", key, err)
	}
	return info, nil
}

// head also returns the id of the write that made the object.
func (s *s3Store) head(ctx context.Context, key string) (Info, string, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.name(key)})
	if status := httpStatus(err); status == http.StatusNotFound || status == http.StatusBadRequest {
		// The answer to HEAD has no body: a missing bucket, a missing object
		// and a proxy that knows neither look alike. The one to GET tells.
		return s.headByGet(ctx, key)
	}
	if err != nil {
		return Info{}, "", err
	}
	return describe(key, aws.ToInt64(out.ContentLength), out.ETag, out.Metadata)
}

func (s *s3Store) headByGet(ctx context.Context, key string) (Info, string, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: s.name(key)})
	if err != nil {
		return Info{}, "", err
	}
	out.Body.Close() // it appeared meanwhile
	return describe(key, aws.ToInt64(out.ContentLength), out.ETag, out.Metadata)
}

func describe(key string, size int64, etag *string, meta map[string]string) (Info, string, error) {
	if aws.ToString(etag) == "" {
		return Info{}, "", errors.New("the answer has no ETag: this is not an S3 server (a proxy or a login page?)")
	}
	return Info{Key: key, Size: size, SHA256: meta[metaSHA256], ETag: *etag}, meta[metaWrite], nil
}

// List asks for all pages.
func (s *s3Store) List(ctx context.Context, prefix string) ([]Info, error) {
	if err := validatePrefix(prefix); err != nil {
		return nil, err
	}
	var out []Info
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.name(prefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.fail("list", prefix, err)
		}
		// Every ListBucketResult repeats the bucket's name; any other XML
		// would read as an empty list.
		if aws.ToString(page.Name) == "" {
			return nil, s.fail("list", prefix, errors.New("the answer is no list of objects: this is not an S3 server (a proxy or a login page?)"))
		}
		for _, o := range page.Contents {
			key := aws.ToString(o.Key)
			if s.prefix != "" {
				key = strings.TrimPrefix(key, s.prefix+"/")
			}
			// Folder markers and names that no store of ours can have.
			if ValidateKey(key) != nil {
				continue
			}
			out = append(out, Info{Key: key, Size: aws.ToInt64(o.Size), ETag: aws.ToString(o.ETag)})
		}
	}
	sortInfos(out)
	return out, nil
}
