package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// storeTimeout ends one question to the store.
const storeTimeout = 15 * time.Second

// store examines that the store answers and takes the credentials of the cluster.
func (e *exam) store(ctx context.Context) error {
	if s := e.param("store"); strings.HasPrefix(s, "file:") {
		e.ok("store", "the store is %s: no S3 is used", s)
		return nil
	}
	endpoint, region, bucket, err := e.storeSettings(ctx)
	if err != nil {
		return err
	}
	accessKey, secretKey, ok, err := e.storeSecret(ctx, endpoint)
	if err != nil || !ok {
		return err
	}
	where := cmp.Or(endpoint, "AWS")
	if endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			e.problem("store", "write http://host:port or https://host", "the endpoint of the store is no address: %q", redact(endpoint))
			return nil
		}
		if ok, err := e.reachable(ctx, "store", "the store", u.Host); err != nil || !ok {
			return err
		}
	}
	client, done := e.storeClient(endpoint, region, accessKey, secretKey)
	defer done()
	if bucket == "" {
		if _, err := withTimeout(ctx, func(ctx context.Context) (*s3.ListBucketsOutput, error) {
			return client.ListBuckets(ctx, &s3.ListBucketsInput{})
		}); err != nil {
			return e.storeFailed(ctx, "the store "+where, err)
		}
		e.ok("store", "the store %s takes the credentials; no bucket is named here (--s3-bucket)", where)
		return nil
	}
	name := fmt.Sprintf("bucket %s of the store %s", bucket, where)
	list, err := withTimeout(ctx, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
		return client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket, MaxKeys: aws.Int32(1)})
	})
	if err != nil {
		return e.storeFailed(ctx, name, err)
	}
	if aws.ToString(list.Name) == "" {
		e.problem("store", "correct the endpoint: is it a proxy, or a console?", "%s answers, but not as S3", where)
		return nil
	}
	if !e.o.WriteProbe {
		e.ok("store", "%s can be listed with these credentials (writing was not tried: --write-probe)", name)
		return nil
	}
	return e.writeProbe(ctx, client, bucket, name)
}

// writeProbe writes an object under a name that nobody has, and deletes it.
func (e *exam) writeProbe(ctx context.Context, client *s3.Client, bucket, name string) error {
	key := "yard-doctor/" + rand.Text()
	if _, err := withTimeout(ctx, func(ctx context.Context) (*s3.PutObjectOutput, error) {
		return client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader([]byte("yard doctor\n"))})
	}); err != nil {
		return e.storeFailed(ctx, "writing to "+name, err)
	}
	if _, err := withTimeout(ctx, func(ctx context.Context) (*s3.DeleteObjectOutput, error) {
		return client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	}); err != nil {
		e.warn("store", "delete it by hand", "object %s was written to %s and could not be deleted again: %s", key, name, storeReason(err))
		return nil
	}
	e.ok("store", "%s can be listed and written with these credentials", name)
	return nil
}

func withTimeout[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return ask(ctx)
}

// storeSettings reads the ConfigMap that the tasks read; all of its keys are optional.
func (e *exam) storeSettings(ctx context.Context) (endpoint, region, bucket string, err error) {
	c, err := e.Kube.CoreV1().ConfigMaps(e.o.Namespace).Get(ctx, e.o.StoreConfig, metav1.GetOptions{})
	data := map[string]string{}
	switch {
	case apierrors.IsNotFound(err):
		if e.o.Endpoint == "" {
			e.warn("config", "create it with the keys endpoint, region and bucket, unless the store is AWS itself", "ConfigMap %s does not exist: the store is taken to be AWS", e.o.StoreConfig)
		}
	case err != nil:
		if err := e.cannotSee("config", "config maps", err); err != nil {
			return "", "", "", err
		}
	default:
		data = c.Data
		sound := true
		for _, key := range []string{"endpoint", "region", "bucket"} {
			if v := data[key]; v != strings.TrimSpace(v) {
				sound = false
				e.problem("config", "write it without spaces and line breaks around it", "ConfigMap %s: the value of %s has a space or line break at an end", c.Name, key)
			}
		}
		if sound {
			e.ok("config", "ConfigMap %s: endpoint %s, bucket %s", c.Name, cmp.Or(redact(data["endpoint"]), "of AWS"), cmp.Or(data["bucket"], "not set"))
		}
	}
	bucket = cmp.Or(e.o.Bucket, bucketOf(e.param("store")), strings.TrimSpace(data["bucket"]))
	return cmp.Or(e.o.Endpoint, strings.TrimSpace(data["endpoint"])), strings.TrimSpace(data["region"]), bucket, nil
}

// bucketOf takes the bucket out of s3://bucket/prefix.
func bucketOf(store string) string {
	rest, ok := strings.CutPrefix(store, "s3://")
	if !ok {
		return ""
	}
	bucket, _, _ := strings.Cut(rest, "/")
	return bucket
}

// redact hides a password in a URL.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	return u.Redacted()
}

func (e *exam) storeClient(endpoint, region, accessKey, secretKey string) (*s3.Client, func()) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: e.Dial}
	o := s3.Options{
		Region: cmp.Or(region, "us-east-1"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey, Source: "Secret"}, nil
		}),
		HTTPClient:       &http.Client{Transport: transport},
		RetryMaxAttempts: 1, // what is down now is the finding
	}
	if endpoint != "" {
		o.BaseEndpoint = &endpoint
		o.UsePathStyle = true
		// Servers other than AWS may not know the newer checksums.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
	return s3.New(o), transport.CloseIdleConnections
}
