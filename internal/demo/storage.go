package demo

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/trainyard/trainyard/internal/demo/kubectl"
	"github.com/trainyard/trainyard/internal/demo/progress"
)

// Names that the demo and what runs on it agree on.
const (
	Namespace       = "trainyard"
	SystemNamespace = "trainyard-system"
	Bucket          = "trainyard"
	// S3InCluster is the S3 server's address in pods.
	S3InCluster = "http://s3.trainyard-system.svc.cluster.local:7070"
	region      = "us-east-1"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// manifest returns one of the demo's own manifests.
func manifest(name string) ([]byte, error) { return manifests.ReadFile("manifests/" + name + ".yaml") }

// S3Credentials are an account of the S3 server.
type S3Credentials struct{ ID, Secret string }

// Storage starts the S3 server and makes the bucket.
func (d *Demo) Storage(ctx context.Context, step *progress.Step) error {
	kubectl, err := d.kubectl()
	if err != nil {
		return err
	}
	var documents []string
	for _, name := range []string{"namespace-system", "s3-data", "s3-deployment", "s3-service"} {
		data, err := manifest(name)
		if err != nil {
			return err
		}
		documents = append(documents, strings.ReplaceAll(string(data), "image: IMAGE", "image: "+d.inCluster.S3))
	}
	if _, err := kubectl.Apply(ctx, []byte(documents[0])); err != nil {
		return err
	}
	account, err := d.s3Account(ctx, kubectl)
	if err != nil {
		return err
	}
	if _, err := kubectl.Apply(ctx, []byte(strings.Join(documents[1:], "\n---\n"))); err != nil {
		return err
	}
	step.Doing("waiting for the S3 server")
	if err := kubectl.WaitForDeployments(ctx, SystemNamespace, 3*time.Minute); err != nil {
		return err
	}
	if err := waitForHTTP(ctx, d.S3Endpoint()); err != nil {
		return err
	}
	_, err = d.s3(account).CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(Bucket)})
	var owned *types.BucketAlreadyOwnedByYou
	if err != nil && !errors.As(err, &owned) {
		return fmt.Errorf("create bucket %s at %s: %w", Bucket, d.S3Endpoint(), err)
	}
	step.Done("S3 at %s, bucket %s", d.S3Endpoint(), Bucket)
	return nil
}

// S3Endpoint is the S3 server's address on this machine.
func (d *Demo) S3Endpoint() string { return fmt.Sprintf("http://127.0.0.1:%d", d.S3Port) }

func (d *Demo) s3(account S3Credentials) *s3.Client {
	return s3.New(s3.Options{
		Region:       region,
		BaseEndpoint: aws.String(d.S3Endpoint()),
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(account.ID, account.Secret, ""),
		HTTPClient:   &http.Client{Transport: &http.Transport{}}, // next door: no proxy
	})
}

// s3Account returns the S3 server's account; it is made up once and lives in a
// Secret of the cluster, nowhere else.
func (d *Demo) s3Account(ctx context.Context, k kubectl.CLI) (S3Credentials, error) {
	kept, err := keptSecret(ctx, k, "s3-root", func() map[string]string {
		return S3Credentials{ID: "trainyard", Secret: rand.Text()}.data()
	})
	return S3Credentials{ID: kept["access-key-id"], Secret: kept["secret-access-key"]}, err
}

// data is what the Secret has that tasks read.
func (a S3Credentials) data() map[string]string {
	return map[string]string{"access-key-id": a.ID, "secret-access-key": a.Secret}
}

// keptSecret returns what a Secret of the cluster holds; the first time it is made up.
func keptSecret(ctx context.Context, k kubectl.CLI, name string, makeUp func() map[string]string) (map[string]string, error) {
	made := makeUp()
	out, err := k.Run(ctx, "--namespace", SystemNamespace, "get", "secret", name, "--output=json")
	if kubectl.Missing(err) {
		return made, applySecret(ctx, k, SystemNamespace, name, made)
	}
	if err != nil {
		return nil, err
	}
	var secret struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal([]byte(out), &secret); err != nil {
		return nil, err
	}
	kept := map[string]string{}
	for key := range made {
		value, err := base64.StdEncoding.DecodeString(secret.Data[key])
		if err != nil || len(value) == 0 {
			return nil, fmt.Errorf("secret %s/%s has no %s: delete it and run make demo again", SystemNamespace, name, key)
		}
		kept[key] = string(value)
	}
	return kept, nil
}

// applySecret writes a Secret. It goes through standard input: an argument would be
// seen by others on this machine.
func applySecret(ctx context.Context, k kubectl.CLI, namespace, name string, data map[string]string) error {
	secret, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata":   map[string]string{"name": name, "namespace": namespace},
		"stringData": data,
	})
	if err != nil {
		return err
	}
	_, err = k.Apply(ctx, secret)
	return err
}

// putFile puts a file into the bucket unless an object of its size is there.
func (d *Demo) putFile(ctx context.Context, account S3Credentials, key, file string) (there bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	client := d.s3(account)
	head, err := client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(Bucket), Key: aws.String(key)})
	if err == nil && aws.ToInt64(head.ContentLength) == info.Size() {
		return true, nil
	}
	_, err = client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(Bucket), Key: aws.String(key), Body: f, ContentLength: aws.Int64(info.Size())})
	if err != nil {
		return false, fmt.Errorf("put %s as %s: %w", path.Base(file), key, err)
	}
	return false, nil
}
