package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// right is something that an account does.
type right struct {
	group, resource string
	verbs           []string
	everywhere      bool // of the cluster, not of the namespace
}

const (
	triggersGroup = "triggers.tekton.dev"
	tektonGroup   = "tekton.dev"
)

// listenerNeeds is what a listener ends without, or starts no run without.
func listenerNeeds() []right {
	read := []string{"get", "list", "watch"}
	return []right{
		{triggersGroup, "eventlisteners", read, false},
		{triggersGroup, "triggers", read, false},
		{triggersGroup, "triggerbindings", read, false},
		{triggersGroup, "triggertemplates", read, false},
		{triggersGroup, "interceptors", read, false},
		{triggersGroup, "clustertriggerbindings", read, true},
		{triggersGroup, "clusterinterceptors", read, true},
		{tektonGroup, "pipelineruns", []string{"create"}, false},
	}
}

func queueNeeds() []right {
	return []right{{tektonGroup, "pipelineruns", []string{"get", "list", "watch", "patch"}, false}}
}

func statusNeeds() []right {
	return append(queueNeeds(), right{tektonGroup, "taskruns", []string{"list"}, false})
}

func (p *push) listenerRights(ctx context.Context, account string) error {
	return p.rights(ctx, account, "the listener's pod ends, or starts no run",
		"bind it to the Role and the ClusterRole of triggers/: role-binding.yaml and cluster-role-binding.yaml there, each with the account's namespace", listenerNeeds())
}

// rights asks the API server whether an account may do what it has to. Whatever
// binding gives it counts.
func (p *push) rights(ctx context.Context, account, without, remedy string, needs []right) error {
	_, err := p.Kube.CoreV1().ServiceAccounts(p.o.Namespace).Get(ctx, account, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p.say(p.level, "create it (triggers/ has the file)", nil, "ServiceAccount %s does not exist: %s", account, without)
		return nil
	}
	if err != nil {
		return p.cannotSee("service-account", "service accounts", err)
	}
	var missing []string
	for _, r := range needs {
		var verbs []string
		for _, verb := range r.verbs {
			may, err := p.may(ctx, account, verb, r)
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				p.say(Warning, "let someone run this who may create subjectaccessreviews.authorization.k8s.io", nil,
					"whether the accounts of the push trigger have the rights that they need cannot be told with these rights")
				return nil
			}
			if err != nil {
				return p.cannotSee("trigger", "subject access reviews", err)
			}
			if !may {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			where := "in the namespace"
			if r.everywhere {
				where = "in the cluster"
			}
			missing = append(missing, fmt.Sprintf("%s %s.%s %s", strings.Join(verbs, ", "), r.resource, r.group, where))
		}
	}
	if len(missing) > 0 {
		p.say(p.level, remedy, missing, "ServiceAccount %s lacks rights that it needs: %s", account, without)
		return nil
	}
	p.ok("trigger", "ServiceAccount %s has the rights that it needs", account)
	return nil
}

func (p *push) may(ctx context.Context, account, verb string, r right) (bool, error) {
	attributes := &authorizationv1.ResourceAttributes{Group: r.group, Resource: r.resource, Verb: verb}
	if !r.everywhere {
		attributes.Namespace = p.o.Namespace
	}
	review, err := p.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + p.o.Namespace + ":" + account,
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + p.o.Namespace, "system:authenticated"},
			ResourceAttributes: attributes,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
