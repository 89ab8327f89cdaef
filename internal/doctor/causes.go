package doctor

import (
	"strings"
)

// cause is what a message of a kubelet, a registry, a store or a log means.
type cause struct {
	says   string // in lower case, part of the message
	means  string
	remedy string
}

// causes are looked for in order: the more particular come first.
func causes() []cause {
	return []cause{
		{"no space left on device", "a disk is full", "enlarge the claim or delete old runs on it; if it is the node's own disk, remove images (crictl rmi --prune)"},
		{"disk quota exceeded", "a disk is full", "enlarge the claim or delete old runs on it"},
		{"signaturedoesnotmatch", "the store knows the access key, but the secret key is wrong", "correct secret-access-key in the Secret of the store"},
		{"invalidaccesskeyid", "the store does not know the access key", "correct access-key-id in the Secret of the store"},
		{"xadminusernotfound", "the store does not know the access key", "correct access-key-id in the Secret of the store"}, // versitygw
		{"requesttimetooskewed", "the clocks of the node and the store differ", "set the clock of the node"},
		{"nosuchbucket", "the bucket does not exist", "create it, or correct its name"},
		{"more than one persistentvolumeclaim is bound", "the task mounts two claims, which Tekton's affinity assistant does not allow", "use one claim with sub-paths, or set coschedule to pipelineruns"},
		{"server gave http response to https client", "the registry speaks plain http and the node asks it in TLS", "give the registry a certificate, or list it as an insecure registry in the node's containerd (certs.d/HOST/hosts.toml)"},
		{"speaks plain http", "the registry speaks plain http, which nobody has allowed for it", "list its host as an insecure registry, here and in the run, or give it a certificate"},
		{"x509:", "the certificate of the server is not trusted", "add the CA that signed it to where it is not trusted: the ConfigMap trainyard-ca for our tasks, the node for pulls"},
		{"toomanyrequests", "the registry limits how often it is asked", "wait, or log in, or use a mirror"},
		{"no match for platform", "the image has no variant for this node's architecture", "build the image for it, or choose another node with nodeSelector"},
		{"no matching manifest", "the image has no variant for this node's architecture", "build the image for it, or choose another node with nodeSelector"},
		{"exec format error", "the program is of another architecture than the node", "build the image for it, or choose another node with nodeSelector"},
		{"manifest unknown", "the image does not exist in the registry", "correct name and digest, or push it"},
		{"not found: manifest", "the image does not exist in the registry", "correct name and digest, or push it"},
		{`serviceaccounts "`, "the ServiceAccount does not exist", "create it, or name another in the run"},
		{"unauthorized", "the registry or store refuses the credentials", "correct the Secret, and check that the ServiceAccount or task uses it"},
		{"authorization failed", "the registry refuses the credentials", "correct the Secret, and check that the ServiceAccount names it in imagePullSecrets"},
		{"pull access denied", "the registry refuses the credentials, or the image does not exist", "check the name, and that the ServiceAccount names the Secret in imagePullSecrets"},
		{"accessdenied", "the credentials do not allow this", "give the access key the permissions to list, read and write in the bucket"},
		{"forbidden", "the credentials do not allow this", "give the account the permission that the message names"},
		{"no such host", "the name of the server is unknown to DNS", "correct the name, or the node's or cluster's DNS"},
		{"connection refused", "nothing listens at this address: the server is down or the port is wrong", "start the server, or correct the address"},
		{"no route to host", "the server cannot be reached over the network", "check the address and network policies"},
		{"network is unreachable", "the server cannot be reached over the network", "check the address and network policies"},
		{"i/o timeout", "the server does not answer", "check the address, the server and network policies"},
		{"context deadline exceeded", "the server does not answer in time", "check the address, the server and network policies"},
		{"runasnonroot and image will run as root", "the image runs as root, and the pod may not", "use an image with a numeric user that is not 0"},
		{"non-numeric user", "the image names its user by a word, so nobody can tell that it is not root", "give the image a numeric user, or set runAsUser"},
		{"executable file not found", "the image does not hold the program", "correct the step's command, or the image"},
		{"permission denied", "the step may not read or write this file", "set fsGroup 1000 in the run's podTemplate.securityContext, and check that the volume honours it"},
		{"read-only file system", "the step writes outside its volumes", "write to the workspace or an emptyDir"},
		{"no such file or directory", "a file or program is not where the step looks for it", "correct the path, or the image"},
	}
}

// causeOf finds the first cause that a message has signs of.
func causeOf(message string) (cause, bool) {
	lower := strings.ToLower(message)
	for _, c := range causes() {
		if strings.Contains(lower, c.says) {
			return c, true
		}
	}
	// containerd writes the reference before it: "…/app@sha256:…: not found".
	if strings.HasSuffix(strings.TrimRight(lower, `".`), ": not found") {
		return cause{"not found", "the image does not exist in the registry", "correct name and digest, or push it"}, true
	}
	return cause{}, false
}
