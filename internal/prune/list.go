package prune

import (
	"context"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// page is how many objects are asked for at once. A run holds all of its tasks'
// specifications, so a thousand are tens of megabytes.
const page = 100

// each reads a list page by page and shows each object of it.
func each[T any](ctx context.Context, list pager.ListPageFunc, what, selector string, show func(*T)) error {
	p := pager.New(list)
	p.PageSize, p.PageBufferSize = page, 1
	err := p.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(o runtime.Object) error {
		item, ok := any(o).(*T)
		if !ok {
			return fmt.Errorf("the server answers with %T", o)
		}
		show(item)
		return nil
	})
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "list %s: %w", what, err)
	}
	return nil
}

func (p *Pruner) eachRun(ctx context.Context, namespace, selector string, show func(*pipelinev1.PipelineRun)) error {
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return p.Tekton.TektonV1().PipelineRuns(namespace).List(ctx, o)
	}
	return each(ctx, list, "PipelineRuns of namespace "+namespace, selector, show)
}
