package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	smithy "github.com/aws/smithy-go"
)

// storeFailed reports what a store refused.
func (e *exam) storeFailed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reason := storeReason(err)
	f := Finding{Check: "store", Level: Problem, Message: fmt.Sprintf("%s: %s", what, reason)}
	if c, ok := causeOf(reason); ok {
		f.Message = fmt.Sprintf("%s: %s", what, c.means)
		f.Details, f.Remedy = []string{reason}, c.remedy
	}
	if status(err) == 301 || status(err) == 307 {
		f.Remedy = "set the region of the bucket in the ConfigMap"
	}
	if f.Remedy == "" {
		f.Remedy = "look whether the store runs and the endpoint is right"
	}
	e.report.add(f)
	return nil
}

// storeReason keeps of an error of the SDK what helps, on one line.
func storeReason(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return strings.TrimSuffix(fmt.Sprintf("%s %s (status %d)", api.ErrorCode(), strings.Join(strings.Fields(api.ErrorMessage()), " "), status(err)), ".")
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

func status(err error) int {
	var r *awshttp.ResponseError
	if errors.As(err, &r) {
		return r.HTTPStatusCode()
	}
	return 0
}
