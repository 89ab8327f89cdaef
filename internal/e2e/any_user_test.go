//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// anyUser is the pod of a namespace whose users are given to it, as OpenShift's
// restricted-v2 makes it: a number of the namespace, group 0, volumes with a group of
// the same number.
func anyUser(id int64) *corev1.PodSecurityContext {
	group, yes := int64(0), true
	return &corev1.PodSecurityContext{
		RunAsUser: &id, RunAsGroup: &group, FSGroup: &id, RunAsNonRoot: &yes,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// One source gives one digest, whoever builds it.
func TestAnyUserBuildsTheSameImage(t *testing.T) {
	e := connect(t)
	namespace := e.namespace(t)
	e.install(t, namespace)
	source := e.repository(t, namespace)
	rebuild := param("rebuild", "true")
	cache := param("cache-image", e.Registry+"/e2e/"+namespace+":cache")

	b := builds{env: e, namespace: namespace}
	own := b.build(t, source.push(t, "as the builder's user"), rebuild)
	// The second from the cache that the first wrote, as another user.
	for _, id := range []int64{1000680000, 1000710000} {
		b.as, b.image = anyUser(id), fmt.Sprint("user-", id)
		other := b.build(t, source.push(t, "as the user of a namespace"), rebuild, cache)
		if other.digest != own.digest || other.cached != "false" || other.steps["export"] != "Completed" {
			t.Errorf("user %d built %s, the builder's user %s; found: %s, steps %v", id, other.digest, own.digest, other.cached, other.steps)
		}
		if other.before == "" || other.before != other.after {
			t.Errorf("user %d: the checkout was %s and is %s", id, other.before, other.after)
		}
	}
	e.runTrainer(t, namespace, own.ref)
}
