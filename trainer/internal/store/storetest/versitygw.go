package storetest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// BinaryVariable names the versitygw binary; scripts/versitygw.sh builds it
// and prints its path.
const BinaryVariable = "TRAINYARD_VERSITYGW"

// Bucket is the one bucket of the server.
const Bucket = "models"

// StartVersitygw runs a real S3 server over an empty directory until the test
// ends, sets the credentials in the environment, and returns its endpoint.
func StartVersitygw(t *testing.T) string {
	t.Helper()
	bin := os.Getenv(BinaryVariable)
	if bin == "" {
		t.Fatalf("%s is not set: run with %s=$(sh scripts/versitygw.sh)", BinaryVariable, BinaryVariable)
	}
	dir := attributeDir(t)
	addr := freeAddress(t)
	const access, secret = "trainyard-test", "trainyard-test-secret"
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_PROFILE": "",
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "", "AWS_REGION": "", "AWS_CA_BUNDLE": "",
		"AWS_REQUEST_CHECKSUM_CALCULATION": "",
	} {
		t.Setenv(k, v)
	}

	var log bytes.Buffer
	cmd := exec.Command(bin, "--port", addr, "--quiet", "--keep-alive", "--health", "/health", "posix", dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+access, "ROOT_SECRET_KEY="+secret)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
		if t.Failed() {
			t.Logf("versitygw said:\n%s", log.String())
		}
	})
	endpoint := "http://" + addr
	waitReady(t, endpoint+"/health", exited)

	client := s3.New(s3.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(access, secret, ""),
	})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(Bucket)}); err != nil {
		t.Fatal(err)
	}
	return endpoint
}

// attributeDir finds a folder on a file system with extended attributes, in
// which the server keeps metadata and ETags; tmpfs may not have them.
func attributeDir(t *testing.T) string {
	t.Helper()
	candidates := []string{t.TempDir()}
	if cache, err := os.UserCacheDir(); err == nil {
		candidates = append(candidates, filepath.Join(cache, "trainyard"))
	}
	candidates = append(candidates, "/var/tmp")
	var tried []string
	for _, parent := range candidates {
		if err := os.MkdirAll(parent, 0o775); err != nil {
			tried = append(tried, err.Error())
			continue
		}
		dir, err := os.MkdirTemp(parent, "versitygw-*")
		if err == nil {
			err = tryAttribute(filepath.Join(dir, "probe"))
		}
		if err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
		os.RemoveAll(dir)
		tried = append(tried, err.Error())
	}
	t.Fatalf("no folder with extended attributes: set TMPDIR to one on ext4 or xfs: tried %q", tried)
	return ""
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// waitReady asks until the server answers or ends.
func waitReady(t *testing.T, url string, exited chan error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	var last error
	for {
		resp, err := http.Get(url)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("status %s", resp.Status)
		}
		last = err
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("versitygw ended at once: %v", err)
		case <-limit:
			t.Fatalf("versitygw gave no answer: %v", last)
		case <-tick.C:
		}
	}
}
