package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// cache holds what several checks ask for.
type cache struct {
	nodes   cached[corev1.Node]
	pods    cached[corev1.Pod]
	events  cached[corev1.Event]
	classes cached[storagev1.StorageClass]
}

// cached is a list that was read, or may not be seen: then it is empty.
type cached[T any] struct {
	items      []T
	read, seen bool
}

// pageSize bounds one answer of the API server.
const pageSize = 500

// list reads all pages of a list once.
func list[T any](ctx context.Context, e *exam, to *cached[T], check, what string, page func(context.Context, metav1.ListOptions) ([]T, string, error)) ([]T, error) {
	if to.read {
		return to.items, nil
	}
	for next := ""; ; {
		items, more, err := page(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			err = e.cannotSee(check, what, err)
			to.items, to.read = nil, err == nil
			return nil, err
		}
		to.items = append(to.items, items...)
		if next = more; next == "" {
			to.read, to.seen = true, true
			return to.items, nil
		}
	}
}

func (e *exam) nodes(ctx context.Context) ([]corev1.Node, error) {
	return list(ctx, e, &e.cache.nodes, "capacity", "nodes", func(ctx context.Context, o metav1.ListOptions) ([]corev1.Node, string, error) {
		l, err := e.Kube.CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return l.Items, l.Continue, nil
	})
}

// allPods are those of all namespaces: anybody's requests hold a node.
func (e *exam) allPods(ctx context.Context) ([]corev1.Pod, error) {
	return list(ctx, e, &e.cache.pods, "capacity", "the pods of all namespaces", func(ctx context.Context, o metav1.ListOptions) ([]corev1.Pod, string, error) {
		l, err := e.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return l.Items, l.Continue, nil
	})
}

func (e *exam) classes(ctx context.Context) ([]storagev1.StorageClass, error) {
	return list(ctx, e, &e.cache.classes, "claim", "storage classes", func(ctx context.Context, o metav1.ListOptions) ([]storagev1.StorageClass, string, error) {
		l, err := e.Kube.StorageV1().StorageClasses().List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return l.Items, l.Continue, nil
	})
}

// eventsOf returns the events about an object, the newest first.
func (e *exam) eventsOf(ctx context.Context, uid types.UID) ([]corev1.Event, error) {
	all, err := list(ctx, e, &e.cache.events, "events", "the events of namespace "+e.o.Namespace, func(ctx context.Context, o metav1.ListOptions) ([]corev1.Event, string, error) {
		l, err := e.Kube.CoreV1().Events(e.o.Namespace).List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return l.Items, l.Continue, nil
	})
	if err != nil {
		return nil, err
	}
	var own []corev1.Event
	for _, ev := range all {
		if ev.InvolvedObject.UID == uid {
			own = append(own, ev)
		}
	}
	slices.SortStableFunc(own, func(a, b corev1.Event) int { return eventTime(b).Compare(eventTime(a)) })
	return own, nil
}

func eventTime(ev corev1.Event) time.Time {
	if ev.Series != nil && !ev.Series.LastObservedTime.IsZero() {
		return ev.Series.LastObservedTime.Time
	}
	return cmp.Or(ev.LastTimestamp.Time, ev.EventTime.Time, ev.CreationTimestamp.Time)
}

// warnings returns the newest warning with one of these reasons; no reason is any.
func newestWarning(events []corev1.Event, reasons ...string) (corev1.Event, bool) {
	for _, ev := range events {
		if ev.Type == corev1.EventTypeWarning && (len(reasons) == 0 || slices.Contains(reasons, ev.Reason)) {
			return ev, true
		}
	}
	return corev1.Event{}, false
}
