package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serviceAccounts examines that the accounts and the secrets they name exist.
func (e *exam) serviceAccounts(ctx context.Context, names []string) error {
	for _, name := range names {
		sa, err := e.Kube.CoreV1().ServiceAccounts(e.o.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			e.problem("service-account", "create it (sa/ has the file), or name another in the run", "ServiceAccount %s does not exist in namespace %s", name, e.o.Namespace)
			continue
		}
		if err != nil {
			return e.cannotSee("service-account", "service accounts", err)
		}
		missing := false
		for _, ref := range sa.ImagePullSecrets {
			there, err := e.secretExists(ctx, ref.Name)
			if err != nil {
				return err
			}
			if !there && ref.Name != e.registrySecret() { // that one may be missing
				missing = true
				e.warn("service-account", "create the Secret, or remove it from imagePullSecrets", "ServiceAccount %s pulls images with Secret %s, which does not exist: images that need it are not pulled", name, ref.Name)
			}
		}
		for _, ref := range sa.Secrets {
			there, err := e.secretExists(ctx, ref.Name)
			if err != nil {
				return err
			}
			if !there {
				missing = true
				e.problem("service-account", "create the Secret, or remove it from the account's secrets: Tekton mounts all of them", "ServiceAccount %s names Secret %s, which does not exist: no pod of it can start", name, ref.Name)
			}
		}
		if !missing {
			e.ok("service-account", "ServiceAccount %s exists", name)
		}
	}
	return nil
}

func (e *exam) secretExists(ctx context.Context, name string) (bool, error) {
	_, err := e.Kube.CoreV1().Secrets(e.o.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return true, e.cannotSee("secret", "secrets", err)
	}
	return true, nil
}

// secret reads a Secret; nil when it is not there or may not be seen.
func (e *exam) secret(ctx context.Context, name string) (s *corev1.Secret, there bool, err error) {
	s, err = e.Kube.CoreV1().Secrets(e.o.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, e.cannotSee("secret", "secrets", err)
	}
	return s, true, nil
}

// storeSecret examines the credentials of the store and returns them.
func (e *exam) storeSecret(ctx context.Context, endpoint string) (accessKey, secretKey string, ok bool, err error) {
	const idKey, secretKeyKey = "access-key-id", "secret-access-key"
	s, there, err := e.secret(ctx, e.o.StoreSecret)
	if err != nil {
		return "", "", false, err
	}
	if !there && endpoint == "" {
		e.warn("secret", "check that the platform gives the pods an identity, or create it", "Secret %s does not exist in namespace %s: the pods need credentials for AWS from their platform, which cannot be tried from here", e.o.StoreSecret, e.o.Namespace)
		return "", "", false, nil
	}
	if !there {
		e.problem("secret", fmt.Sprintf("kubectl create secret generic %s --namespace %s --from-file=%s=FILE --from-file=%s=FILE (files without a line break at the end)", e.o.StoreSecret, e.o.Namespace, idKey, secretKeyKey),
			"Secret %s does not exist in namespace %s: it holds the credentials of the store", e.o.StoreSecret, e.o.Namespace)
		return "", "", false, nil
	}
	if s == nil {
		return "", "", false, nil
	}
	good := true
	// An empty type is Opaque.
	if t := cmp.Or(s.Type, corev1.SecretTypeOpaque); t != corev1.SecretTypeOpaque {
		e.warn("secret", "create it again with type Opaque", "Secret %s has type %s, not Opaque", s.Name, t)
	}
	for _, key := range []string{idKey, secretKeyKey} {
		value, ok := s.Data[key]
		switch {
		case !ok:
			good = false
			e.problem("secret", fmt.Sprintf("add the key %s", key), "Secret %s has no key %s; it has %s", s.Name, key, keysInWords(s.Data))
		case len(value) == 0:
			good = false
			e.problem("secret", "set its value", "Secret %s: the value of %s is empty", s.Name, key)
		case strings.ContainsFunc(string(value), unicode.IsSpace):
			good = false
			e.problem("secret", "create it again without a line break (printf, not echo)", "Secret %s: the value of %s has a space or line break in it", s.Name, key)
		}
	}
	if !good {
		return "", "", false, nil
	}
	e.ok("secret", "Secret %s has the keys %s and %s", s.Name, idKey, secretKeyKey)
	return string(s.Data[idKey]), string(s.Data[secretKeyKey]), true, nil
}

func keysInWords[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(sortedNames(m), ", ")
}
