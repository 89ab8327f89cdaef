package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
)

// dockerConfig holds the credentials of a Secret of type dockerconfigjson.
type dockerConfig map[string]authn.AuthConfig // by host

// parseDockerConfig reads {"auths": {HOST: {"auth": base64 of user:password}}}.
func parseDockerConfig(data []byte) (dockerConfig, error) {
	var file struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("not a docker configuration: %w", err)
	}
	config := dockerConfig{}
	for key, raw := range file.Auths {
		host := hostOf(key)
		if host == "" {
			return nil, fmt.Errorf("the entry %q names no host", key)
		}
		var auth authn.AuthConfig
		if err := json.Unmarshal(raw, &auth); err != nil {
			// Not the error itself: it may repeat what it could not read.
			return nil, fmt.Errorf("the entry %s cannot be read: auth must be the base64 of USER:PASSWORD", host)
		}
		config[host] = auth
	}
	return config, nil
}

// hostOf takes a registry's host out of what docker and kubectl write as its name.
func hostOf(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(key), "https://"), "http://")
	key, _, _ = strings.Cut(key, "/")
	switch key {
	case "docker.io", "registry-1.docker.io":
		return "index.docker.io" // as image names resolve
	}
	return key
}

// Resolve finds the credentials for a registry.
func (c dockerConfig) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if auth, ok := c[hostOf(r.RegistryStr())]; ok {
		return authn.FromConfig(auth), nil
	}
	return authn.Anonymous, nil
}

var _ authn.Keychain = dockerConfig(nil)

// registrySecret is the name of the Secret that the tasks use for registries.
func (e *exam) registrySecret() string {
	return cmp.Or(e.o.RegistrySecret, e.param("registry-secret"), "registry-credentials")
}

// registryCredentials reads the Secret of the registry; nothing in it is needed
// when the registry asks for nothing.
func (e *exam) registryCredentials(ctx context.Context) (dockerConfig, error) {
	name := e.registrySecret()
	s, there, err := e.secret(ctx, name)
	if err != nil || s == nil {
		if !there {
			e.ok("secret", "there is no Secret %s: the registry is used without credentials", name)
		}
		return nil, err
	}
	remedy := fmt.Sprintf("kubectl create secret docker-registry %s --namespace %s --docker-server=HOST --docker-username=USER --docker-password=…", name, e.o.Namespace)
	if s.Type != corev1.SecretTypeDockerConfigJson {
		e.problem("secret", "delete it; "+remedy, "Secret %s has type %s, not %s", name, s.Type, corev1.SecretTypeDockerConfigJson)
		return nil, nil
	}
	c, err := parseDockerConfig(s.Data[corev1.DockerConfigJsonKey])
	if err == nil && len(c) == 0 {
		err = errors.New("it names no registry")
	}
	if err != nil {
		e.problem("secret", "delete it; "+remedy, "Secret %s: key %s: %v", name, corev1.DockerConfigJsonKey, err)
		return nil, nil
	}
	e.ok("secret", "Secret %s has credentials for %s", name, and(sortedNames(c)))
	return c, nil
}
