package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithymiddleware "github.com/aws/smithy-go/middleware"
)

const (
	defaultPartSize     = 8 << 20
	minPartSize         = 5 << 20
	maxParts            = 10000
	defaultConcurrency  = 4
	defaultStallTimeout = 2 * time.Minute
)

// withDefaults fills in and checks what does not depend on the environment.
func (o Options) withDefaults() (Options, error) {
	if o.PartSize == 0 {
		o.PartSize = defaultPartSize
	}
	if o.PartSize < minPartSize {
		return o, badOption("s3 part size %d: must be at least %d bytes", o.PartSize, minPartSize)
	}
	if o.Concurrency == 0 {
		o.Concurrency = defaultConcurrency
	}
	if o.Concurrency < 1 || o.Concurrency > 64 {
		return o, badOption("s3 concurrency %d: must be between 1 and 64", o.Concurrency)
	}
	if o.StallTimeout == 0 {
		o.StallTimeout = defaultStallTimeout
	}
	if o.StallTimeout < 0 {
		return o, badOption("s3 stall timeout %v: must be positive", o.StallTimeout)
	}
	if o.Delays == nil {
		o.Delays = DefaultDelays()
	}
	if o.Sleep == nil {
		o.Sleep = Sleep
	}
	switch o.PathStyle {
	case "", "true", "false":
	default:
		return o, badOption("s3 path style %q: must be true, false or empty", o.PathStyle)
	}
	switch o.ChecksumMode {
	case "", "when_supported", "when_required":
	default:
		return o, badOption("s3 checksum mode %q: must be when_supported, when_required or empty", o.ChecksumMode)
	}
	return o, checkEndpoint(o.Endpoint)
}

func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return badOption("s3 endpoint: not a URL: write http://host:port or https://host")
	}
	if u.User != nil {
		return badOption("s3 endpoint %q: credentials do not belong into a URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", u.Redacted())
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return badOption("s3 endpoint %q: write http://host:port or https://host", endpoint)
	}
	return nil
}

// newS3Client resolves options and environment into a client and the name of
// the endpoint for messages.
func newS3Client(ctx context.Context, o Options) (*s3.Client, string, error) {
	load := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer { return retryer{o.Delays} }),
	}
	httpClient, err := newHTTPClient(o)
	if err != nil {
		return nil, "", err
	}
	load = append(load, config.WithHTTPClient(httpClient))
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, "", fmt.Errorf("s3 configuration (AWS_* variables, ~/.aws): %w", err)
	}
	// Where the endpoint comes from (option, variable, profile) is known only
	// after the SDK resolved it, so the client is made twice.
	setEndpoint := func(so *s3.Options) {
		if o.Endpoint != "" {
			so.BaseEndpoint = aws.String(o.Endpoint)
		}
	}
	endpoint := aws.ToString(s3.NewFromConfig(cfg, setEndpoint).Options().BaseEndpoint)
	if err := checkEndpoint(endpoint); err != nil {
		return nil, "", err
	}
	if cfg.Region == "" {
		if endpoint == "" {
			return nil, "", badOption("s3 region is not set: set the region, or AWS_REGION, or an endpoint")
		}
		cfg.Region = "us-east-1" // servers that have no regions take this one
	}
	client := s3.NewFromConfig(cfg, setEndpoint, func(so *s3.Options) {
		so.UsePathStyle = o.PathStyle == "true" || (o.PathStyle == "" && endpoint != "")
		applyChecksumMode(so, o.ChecksumMode, endpoint != "")
		so.DisableLogOutputChecksumValidationSkipped = true
	})
	if endpoint == "" {
		endpoint = "AWS S3 in " + cfg.Region
	}
	return client, endpoint, nil
}

// checkCredentials finds out before any work that there are none. Whether they
// are the right ones only the server knows.
func checkCredentials(ctx context.Context, client *s3.Client) error {
	if _, err := client.Options().Credentials.Retrieve(ctx); err != nil {
		return fmt.Errorf("%w: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or mount the secret that holds them: %w", ErrDenied, err)
	}
	return nil
}

// applyChecksumMode decides about the CRC32 trailers that the SDK sends by
// default since service/s3 v1.73.0. Servers that do not know them answer
// NotImplemented or XAmzContentSHA256Mismatch.
func applyChecksumMode(so *s3.Options, mode string, customEndpoint bool) {
	if mode == "" && customEndpoint && os.Getenv("AWS_REQUEST_CHECKSUM_CALCULATION") == "" {
		mode = "when_required"
	}
	switch mode {
	case "when_required":
		so.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	case "when_supported":
		so.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
		so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	}
	if so.RequestChecksumCalculation == aws.RequestChecksumCalculationWhenRequired {
		// Over TLS the SDK would leave the body unsigned, and then nobody
		// checks it. The SHA-256 of the payload is as old as the signature
		// itself: every server must compare it.
		so.APIOptions = append(so.APIOptions, signPayload)
	}
}

func signPayload(stack *smithymiddleware.Stack) error {
	id := (*v4.ComputePayloadSHA256)(nil).ID()
	if _, ok := stack.Finalize.Get(id); !ok {
		return nil
	}
	_, err := stack.Finalize.Swap(id, &v4.ComputePayloadSHA256{})
	return err
}

func newHTTPClient(o Options) (*awshttp.BuildableClient, error) {
	bundle := o.CABundle
	if bundle == "" {
		bundle = os.Getenv("AWS_CA_BUNDLE")
	}
	var pool *x509.CertPool
	if bundle != "" {
		pem, err := os.ReadFile(bundle)
		if err != nil {
			return nil, badOption("s3 CA bundle: %w", err)
		}
		if pool, err = x509.SystemCertPool(); err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, badOption("s3 CA bundle %s: no PEM certificate in it", bundle)
		}
	}
	return awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		if pool != nil {
			if tr.TLSClientConfig == nil {
				tr.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
			}
			tr.TLSClientConfig.RootCAs = pool
		}
		tr.DialContext = withStallLimit(tr.DialContext, o.StallTimeout)
		tr.MaxIdleConnsPerHost = max(tr.MaxIdleConnsPerHost, o.Concurrency)
	}), nil
}

// bucketHint tells how to name the bucket in a message.
func bucketHint(bucket, prefix string) string {
	return "s3://" + strings.TrimSuffix(bucket+"/"+prefix, "/")
}
