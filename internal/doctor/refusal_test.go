package doctor

import (
	"reflect"
	"strings"
	"testing"
)

// The messages are those that API servers of v1.28 to v1.36 give.
func TestParseQuotaRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		want    quotaRefusal
		ok      bool
	}{
		"one resource": {`pods "x" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=2, limited: pods=2`,
			quotaRefusal{quota: "pods", requested: "pods=1", used: "pods=2", limited: "pods=2"}, true},
		"several, and more after it": {`TaskRun Pod exceeded available resources: pods "x" is forbidden: exceeded quota: q-1, requested: limits.cpu=2,requests.memory=1Gi, used: limits.cpu=3,requests.memory=0, limited: limits.cpu=4,requests.memory=512Mi: retrying`,
			quotaRefusal{quota: "q-1", requested: "limits.cpu=2,requests.memory=1Gi", used: "limits.cpu=3,requests.memory=0", limited: "limits.cpu=4,requests.memory=512Mi"}, true},
		"must specify": {`pods "x" is forbidden: failed quota: q: must specify limits.cpu for: step-train; requests.cpu for: step-train`,
			quotaRefusal{quota: "q", mustSpecify: "limits.cpu for: step-train; requests.cpu for: step-train"}, true},
		"cut short":          {`exceeded quota: q, requested: pods=1`, quotaRefusal{}, false},
		"no name":            {`exceeded quota: , requested: a, used: b, limited: c`, quotaRefusal{requested: "a", used: "b", limited: "c"}, false},
		"something else":     {`pods "x" not found`, quotaRefusal{}, false},
		"nothing to specify": {`failed quota: q: must specify `, quotaRefusal{quota: "q"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseQuotaRefusal(c.message)
			if ok != c.ok || ok && got != c.want {
				t.Errorf("%+v %v, want %+v %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestParseSecurityRefusal(t *testing.T) {
	const whole = `pods "x" is forbidden: violates PodSecurity "restricted:v1.36": privileged (container "step-a" must not set securityContext.privileged=true), allowPrivilegeEscalation != false (containers "prepare", "step-a" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "step-a" must set securityContext.capabilities.drop=["ALL"]), runAsUser=0 (pod must not set runAsUser=0), seccompProfile (pod or container "step-a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`
	s, ok := parseSecurityRefusal(whole)
	if !ok || s.level != "restricted:v1.36" || len(s.rules) != 5 || !reflect.DeepEqual(s.containers, []string{"step-a", "prepare"}) {
		t.Fatalf("%v %+v", ok, s)
	}
	if s.rules[1] != `allowPrivilegeEscalation != false (containers "prepare", "step-a" must set securityContext.allowPrivilegeEscalation=false)` || s.rules[3] != "runAsUser=0 (pod must not set runAsUser=0)" {
		t.Errorf("rules %q", s.rules)
	}
	for name, message := range map[string]string{
		"something else": `pods "x" not found`,
		"cut in level":   `violates PodSecurity "restr`,
		"no rules":       `violates PodSecurity "restricted:latest": `,
	} {
		if s, ok := parseSecurityRefusal(message); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s, ok := parseSecurityRefusal(`violates PodSecurity "baseline:latest": hostNetwork`); !ok || s.rules[0] != "hostNetwork" {
		t.Errorf("a rule that names nobody: %v %+v", ok, s)
	}
}

func FuzzParseQuotaRefusal(f *testing.F) {
	f.Add(`exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2`)
	f.Add(`failed quota: q: must specify limits.cpu`)
	f.Fuzz(func(t *testing.T, message string) {
		q, ok := parseQuotaRefusal(message)
		if ok && (q.quota == "" || q.limited == "" && q.mustSpecify == "") {
			t.Errorf("%q gives %+v", message, q)
		}
		if text := refusal("quota", "the pod", message).Message; text == "" {
			t.Error("no message")
		}
	})
}

func FuzzParseSecurityRefusal(f *testing.F) {
	f.Add(`violates PodSecurity "restricted:latest": a (container "b" must c), d (e)`)
	f.Fuzz(func(t *testing.T, message string) {
		s, ok := parseSecurityRefusal(message)
		if ok && (s.level == "" || len(s.rules) == 0) || len(s.rules) > 20 {
			t.Errorf("%q gives %+v", message, s)
		}
	})
}

func TestParseDockerConfig(t *testing.T) {
	c, err := parseDockerConfig([]byte(`{"auths": {"https://index.docker.io/v1/": {"auth": "dTpw"}, "ghcr.io": {"username": "a", "password": "b"}, "http://10.0.0.1:5000/v2/": {}}}`))
	if err != nil || !reflect.DeepEqual(sortedNames(c), []string{"10.0.0.1:5000", "ghcr.io", "index.docker.io"}) || c["index.docker.io"].Username != "u" || c["index.docker.io"].Password != "p" {
		t.Errorf("%v, %v", sortedNames(c), err)
	}
	for name, text := range map[string]string{
		"no JSON":        `auths:`,
		"a broken entry": `{"auths": {"h": {"auth": "c2VjcmV0LXdpdGhvdXQtY29sb24="}}}`,
		"no host":        `{"auths": {"https:///v1/": {}}}`,
	} {
		if _, err := parseDockerConfig([]byte(text)); err == nil || strings.Contains(err.Error(), "secret-without-colon") || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseDockerConfig(f *testing.F) {
	f.Add([]byte(`{"auths": {"ghcr.io": {"auth": "dTpw"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseDockerConfig(data)
		for host := range c {
			if err != nil || host == "" || strings.Contains(host, "/") {
				t.Errorf("%q gives host %q, %v", data, host, err)
			}
		}
	})
}

func TestFillParams(t *testing.T) {
	p := params{"name": "x", "a.b": "y"}
	for value, want := range map[string]string{
		"plain": "plain", "$(params.name)-1": "x-1", `$(params["a.b"])$(params['name'])`: "yx",
		"$(params.other)": "?", "$(tasks.build.results.IMAGE_REF)": "?", "$(params.name)$(params.other)": "?", "": "",
	} {
		got, known := p.fill(value)
		if !known {
			got = "?"
		}
		if got != want {
			t.Errorf("%q is filled to %q, want %q", value, got, want)
		}
	}
}

func FuzzFillParams(f *testing.F) {
	f.Add("$(params.name)")
	f.Add(`$(params["a"])`)
	f.Fuzz(func(t *testing.T, value string) {
		if filled, known := (params{"name": "$(params.name)"}).fill(value); known && strings.Contains(filled, "$(") {
			t.Errorf("%q is called known: %q", value, filled)
		}
	})
}

func TestCauses(t *testing.T) {
	for message, means := range map[string]string{
		`failed to resolve reference "r/a@sha256:1": r/a@sha256:1: not found`:                             "does not exist in the registry",
		`Get "https://10.0.0.1:5000/v2/": http: server gave HTTP response to HTTPS client`:                "plain http",
		`dial tcp: lookup registry.example on 10.96.0.10:53: no such host`:                                "unknown to DNS",
		`no match for platform in manifest: not found`:                                                    "architecture",
		`container has runAsNonRoot and image has non-numeric user (cnb), cannot verify user is non-root`: "names its user by a word",
		`write /workspace/x: No space left on device`:                                                     "a disk is full",
		`open /workspace/source/x: permission denied`:                                                     "may not read or write",
	} {
		if c, ok := causeOf(message); !ok || !strings.Contains(c.means, means) {
			t.Errorf("%q means %q, want %q", message, c.means, means)
		}
	}
	if c, ok := causeOf("step 100 loss 3.2"); ok {
		t.Errorf("a line of a log means %+v", c)
	}
	for _, c := range causes() {
		if c.says != strings.ToLower(c.says) || c.means == "" || c.remedy == "" {
			t.Errorf("%+v can never be found, or says nothing", c)
		}
	}
}

func TestOneLineKeepsTheTerminalSafe(t *testing.T) {
	if got := oneLine("a\n\tb\x1b[31mred\u009b0m  c"); got != "a b [31mred 0m c" {
		t.Errorf("%q", got)
	}
}
