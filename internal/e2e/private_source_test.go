//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// gitPassword has what has to be escaped in an address, and is looked for in whatever
// a run leaves behind.
const gitPassword = "s3cr:et/@pass word"

// A git host that asks who one is, over https and over ssh, in the forms of Secret that
// Tekton's users have. Each case is one TaskRun of fetch-source.
func TestFetchSourceFromAPrivateRepository(t *testing.T) {
	t.Parallel()
	e := connect(t)
	namespace := e.namespace(t)
	host := e.gitHost(t, namespace)
	e.apply(t, namespace, "sa/trainyard-build.yaml", "tasks/fetch-source.yaml")

	https, sshURL, scp := "https://"+host.name+"/repo.git", "ssh://git@"+host.name+"/repo.git", "git@"+host.name+":repo.git"
	line := "https://robot:s3cr%3Aet%2F%40pass%20word@" + host.name + "\n"
	basic := func(password string) secretForm {
		return secretForm{corev1.SecretTypeBasicAuth, map[string]string{"username": "robot", "password": password}}
	}
	sshAuth := func(key []byte, knownHosts string) secretForm {
		return secretForm{corev1.SecretTypeSSHAuth, map[string]string{"ssh-privatekey": string(key), "known_hosts": knownHosts}}
	}
	stranger := newED25519(t)
	tests := map[string]struct {
		url       string
		basicAuth secretForm
		ssh       secretForm
		want      []string // in the log; nil: it succeeds
	}{
		"https-basic-auth": {url: https, basicAuth: basic(gitPassword)},
		"https-git-credentials": {url: https, basicAuth: secretForm{corev1.SecretTypeOpaque, map[string]string{
			".git-credentials": line,
			".gitconfig":       "[credential \"https://" + host.name + "\"]\n\thelper = store\n",
		}}},
		"https-wrong-password": {url: https, basicAuth: basic("s3cr3t-of-another"),
			want: []string{"refused with the credentials of the workspace basic-auth"}},
		"https-no-credentials": {url: https,
			want: []string{"refused without credentials", "put credentials that may read it into the workspace basic-auth"}},
		"https-line-of-another-host": {url: https, basicAuth: secretForm{corev1.SecretTypeOpaque, map[string]string{
			".git-credentials": strings.Replace(line, host.name, "git.example.com", 1),
		}}, want: []string{".git-credentials has no line for https://" + host.name}},
		"https-no-such-repository": {url: "https://" + host.name + "/other.git", basicAuth: basic(gitPassword),
			want: []string{"no such repository"}},
		"https-password-in-url": {url: "https://robot:s3cr3t-of-another@" + host.name + "/repo.git",
			want: []string{"it has credentials in it", "https://***@" + host.name + "/repo.git", "put them into a Secret (basic-auth)"}},
		"ssh-auth":     {url: sshURL, ssh: sshAuth(host.clientKey, host.knownHosts)},
		"ssh-like-scp": {url: scp, ssh: sshAuth(host.clientKey, host.knownHosts)},
		"ssh-git-clone": {url: sshURL, ssh: secretForm{corev1.SecretTypeOpaque, map[string]string{
			"id_rsa": string(host.clientKey), "known_hosts": host.knownHosts,
			"config": "Host " + host.name + "\n\tStrictHostKeyChecking yes\n",
		}}},
		"ssh-wrong-key": {url: sshURL, ssh: sshAuth(stranger.private, host.knownHosts),
			want: []string{"refused with the credentials of the workspace ssh-directory"}},
		"ssh-unknown-host": {url: sshURL, ssh: sshAuth(host.clientKey, knownhosts.Line([]string{"git.example.com"}, host.key)+"\n"),
			want: []string{"known_hosts of the ssh-directory does not name " + host.name}},
		"ssh-host-with-another-key": {url: sshURL, ssh: sshAuth(host.clientKey, knownhosts.Line([]string{host.name}, stranger.public)+"\n"),
			want: []string{host.name + " shows another key than known_hosts says"}},
		"ssh-no-known-hosts": {url: sshURL, ssh: secretForm{corev1.SecretTypeSSHAuth, map[string]string{"ssh-privatekey": string(host.clientKey)}},
			want: []string{"ssh-keyscan " + host.name}},
		"ssh-no-secret": {url: sshURL, want: []string{"bind a Secret with both to the workspace ssh-directory"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := e.fetchRun(namespace, name, test.url)
			for workspace, form := range map[string]secretForm{"basic-auth": test.basicAuth, "ssh-directory": test.ssh} {
				if form.data == nil {
					continue
				}
				e.secret(t, namespace, name, form)
				run.Spec.Workspaces = append(run.Spec.Workspaces, pipelinev1.WorkspaceBinding{
					Name: workspace, Secret: &corev1.SecretVolumeSource{SecretName: name},
				})
			}
			done := e.runTask(t, 5*time.Minute, run)
			log := e.stepLog(t, done)
			if ok := done.Status.GetCondition("Succeeded").IsTrue(); ok != (test.want == nil) {
				t.Fatalf("succeeded: %v; it says:\n%s", ok, log)
			}
			for _, part := range test.want {
				if !strings.Contains(log, part) {
					t.Errorf("it does not say %q:\n%s", part, log)
				}
			}
			got := map[string]string{}
			for _, result := range done.Status.Results {
				got[result.Name] = result.Value.StringVal
			}
			url := strings.Replace(test.url, scp, sshURL, 1) // as an URL, in results
			want := map[string]string{"url": url, "commit": host.commit, "CHAINS-GIT_URL": url, "CHAINS-GIT_COMMIT": host.commit}
			if test.want != nil {
				want = map[string]string{"url": "", "commit": "", "CHAINS-GIT_URL": "", "CHAINS-GIT_COMMIT": ""}
			}
			if !maps.Equal(got, want) {
				t.Errorf("results are %q, want %q", got, want)
			}
			// All that is said of it; a password in the address stays in the
			// specification, and in the status' copy of that.
			said := fmt.Sprintf("%s\n%+v\n%+v", log, done.Status.Conditions, done.Status.Steps)
			for _, secret := range []string{gitPassword, "s3cr%3Aet", "s3cr3t-of-another", "PRIVATE KEY"} {
				if strings.Contains(said, secret) {
					t.Errorf("the secret %q is in the log or the status:\n%s", secret, said)
				}
			}
		})
	}
}

// secretForm is a Secret as somebody would make it.
type secretForm struct {
	kind corev1.SecretType
	data map[string]string
}

func (e env) secret(t *testing.T, namespace, name string, form secretForm) {
	t.Helper()
	_, err := e.kube.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: form.kind, StringData: form.data,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// fetchRun fetches the branch main.
func (env) fetchRun(namespace, name, url string) *pipelinev1.TaskRun {
	template := runAs("trainyard-build")
	return &pipelinev1.TaskRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: pipelinev1.TaskRunSpec{
			TaskRef:            &pipelinev1.TaskRef{Name: "fetch-source"},
			ServiceAccountName: template.ServiceAccountName, PodTemplate: template.PodTemplate,
			Params:     pipelinev1.Params{param("url", url), param("revision", "main")},
			Workspaces: []pipelinev1.WorkspaceBinding{{Name: "shared", EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
}

// runTask creates a TaskRun and waits until it is done. A container that the node
// could not start, as happens on one that has much to do, says nothing of the task:
// then another is created, like a pipeline's retry.
func (e env) runTask(t *testing.T, limit time.Duration, run *pipelinev1.TaskRun) *pipelinev1.TaskRun {
	t.Helper()
	name := run.Name
	for attempt := 1; ; attempt++ {
		if attempt > 1 {
			run.Name = fmt.Sprintf("%s-%d", name, attempt)
		}
		got, err := e.tekton.TektonV1().TaskRuns(run.Namespace).Create(t.Context(), run, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e.until(t, limit, "TaskRun "+run.Name+" is done", func(ctx context.Context) (bool, string, error) {
			if got, err = e.tekton.TektonV1().TaskRuns(run.Namespace).Get(ctx, run.Name, metav1.GetOptions{}); err != nil {
				return false, err.Error(), nil
			}
			state, err := json.Marshal(got.Status.Conditions)
			return got.IsDone(), string(state), err
		})
		notStarted := slices.ContainsFunc(got.Status.Steps, func(s pipelinev1.StepState) bool {
			return s.Terminated != nil && s.Terminated.Reason == "StartError"
		})
		if !notStarted || attempt == 3 {
			return got
		}
		t.Logf("the node did not start %s: %+v", got.Name, got.Status.Steps)
	}
}

// stepLog is what the steps of a TaskRun printed.
func (e env) stepLog(t *testing.T, run *pipelinev1.TaskRun) string {
	t.Helper()
	var all strings.Builder
	for _, step := range run.Status.Steps {
		log, err := e.kube.CoreV1().Pods(run.Namespace).GetLogs(run.Status.PodName, &corev1.PodLogOptions{Container: step.Container}).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all.Write(log)
	}
	return all.String()
}

// gitHost is a git server in a namespace.
type gitHost struct {
	name       string // where pods reach it
	commit     string // of main
	key        ssh.PublicKey
	knownHosts string
	clientKey  []byte // who may read
}

// gitHost starts one with a repository of one commit. Its certificate is of an
// authority that only the ConfigMap trainyard-ca of the namespace names.
func (e env) gitHost(t *testing.T, namespace string) gitHost {
	t.Helper()
	h := gitHost{name: "git." + namespace + ".svc"}
	dir := t.TempDir()
	git := func(args ...string) string { return strings.TrimSpace(e.command(t, dir, nil, "git", args...)) }
	git("init", "--quiet", "--initial-branch=main")
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("private\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("-c", "user.name=e2e", "-c", "user.email=e2e@example.com", "commit", "--quiet", "--message=private")
	h.commit = git("rev-parse", "HEAD")
	git("bundle", "create", "--quiet", "repo.bundle", "main")
	bundle, err := os.ReadFile(filepath.Join(dir, "repo.bundle"))
	if err != nil {
		t.Fatal(err)
	}

	authority, certificate, key := newCertificate(t, h.name)
	hostKey := newED25519(t)
	h.key = hostKey.public
	h.knownHosts = knownhosts.Line([]string{h.name}, h.key) + "\n"
	client, err := rsa.GenerateKey(rand.Reader, 3072) // as id_rsa is
	if err != nil {
		t.Fatal(err)
	}
	h.clientKey = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(client)})
	allowed, err := ssh.NewPublicKey(&client.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.kube.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "git"},
		Data: map[string][]byte{
			"repo.bundle": bundle, "tls.crt": certificate, "tls.key": key, "host-key": hostKey.private,
			"authorized-key": ssh.MarshalAuthorizedKey(allowed), "username": []byte("robot"), "password": []byte(gitPassword),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "trainyard-ca"}, Data: map[string]string{"ca-bundle.crt": string(authority)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.startGitHost(t, namespace)
	return h
}

// startGitHost runs the server where git is: in the image of Tekton's git resolver.
func (e env) startGitHost(t *testing.T, namespace string) {
	t.Helper()
	resolvers, err := e.kube.AppsV1().Deployments("tekton-pipelines-resolvers").Get(t.Context(), "tekton-pipelines-remote-resolvers", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reference, digest := e.pushProgram(t, "gitserver", "e2e/"+namespace+"/git")
	labels, one := map[string]string{"app": "git"}, int32(1)
	id := int64(65532)
	_, err = e.kube.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "git"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{RunAsUser: &id, RunAsGroup: &id, FSGroup: &id},
				Volumes: []corev1.Volume{
					{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "git"}}},
					{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				},
				InitContainers: []corev1.Container{{
					Name: "copy", Image: reference + "@" + digest, Args: []string{"copy", "/data/gitserver"}, SecurityContext: restricted(),
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}},
				Containers: []corev1.Container{{
					Name: "git", Image: resolvers.Spec.Template.Spec.Containers[0].Image, SecurityContext: restricted(),
					Command: []string{"/data/gitserver", "serve", "/config", "/data"},
					Env:     []corev1.EnvVar{{Name: "PATH", Value: "/usr/local/bin:/usr/bin:/bin"}},
					VolumeMounts: []corev1.VolumeMount{
						{Name: "data", MountPath: "/data"}, {Name: "config", MountPath: "/config", ReadOnly: true},
					},
					ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
						TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8443)},
					}},
				}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.kube.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "git"},
		Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{
			{Name: "https", Port: 443, TargetPort: intstr.FromInt32(8443)},
			{Name: "ssh", Port: 22, TargetPort: intstr.FromInt32(2222)},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.until(t, 2*time.Minute, "the git host is there", func(ctx context.Context) (bool, string, error) {
		d, err := e.kube.AppsV1().Deployments(namespace).Get(ctx, "git", metav1.GetOptions{})
		if err != nil {
			return false, err.Error(), nil
		}
		return d.Status.AvailableReplicas == 1, fmt.Sprintf("%+v", d.Status.Conditions), nil
	})
}

type keyPair struct {
	public  ssh.PublicKey
	private []byte
}

func newED25519(t *testing.T) keyPair {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return keyPair{key, pem.EncodeToMemory(block)}
}

// newCertificate makes an authority and a certificate of it.
func newCertificate(t *testing.T, name string) (authority, certificate, key []byte) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, public any, by any) []byte {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	newKey := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "e2e authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey, serverKey := newKey(), newKey()
	caDER := sign(ca, ca, caKey.Public(), caKey)
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	serverDER := sign(server, ca, serverKey.Public(), caKey)
	keyDER, err := x509.MarshalECPrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	return encode("CERTIFICATE", caDER), encode("CERTIFICATE", serverDER), encode("EC PRIVATE KEY", keyDER)
}
