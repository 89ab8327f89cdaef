// Command probe does inside a pod what the end-to-end tests want to see done
// there: it puts an object to S3, or asks a registry for a digest.
//
//	probe put ENDPOINT BUCKET KEY TEXT   (credentials: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)
//	probe resolve REFERENCE              (plain http)
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/trainyard/trainyard/internal/registryclient"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 5 && args[0] == "put":
		client := s3.New(s3.Options{
			Region: "us-east-1", BaseEndpoint: aws.String(args[1]), UsePathStyle: true,
			Credentials: credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
		})
		_, err := client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: aws.String(args[2]), Key: aws.String(args[3]), Body: strings.NewReader(args[4]),
		})
		return err
	case len(args) == 2 && args[0] == "resolve":
		host, _, _ := strings.Cut(args[1], "/")
		client, err := registryclient.New(registryclient.Options{Insecure: []string{host}})
		if err != nil {
			return err
		}
		reference, err := client.Reference(args[1])
		if err != nil {
			return err
		}
		digest, err := client.Digest(ctx, reference)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, digest)
		return nil
	}
	return errors.New("say put ENDPOINT BUCKET KEY TEXT, or resolve REFERENCE")
}
