package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// quotaRefusal is what the API server says when a quota has no room for an object.
type quotaRefusal struct {
	quota                    string
	requested, used, limited string // "limits.cpu=2,pods=1"
	mustSpecify              string // what the quota wants every container to say
}

// parseQuotaRefusal reads the message of the ResourceQuota admission:
// "exceeded quota: NAME, requested: pods=1, used: pods=2, limited: pods=2" or
// "failed quota: NAME: must specify limits.cpu for: step-a".
func parseQuotaRefusal(message string) (quotaRefusal, bool) {
	if _, rest, ok := strings.Cut(message, "exceeded quota: "); ok {
		var q quotaRefusal
		var found [3]bool
		q.quota, rest, found[0] = strings.Cut(rest, ", requested: ")
		q.requested, rest, found[1] = strings.Cut(rest, ", used: ")
		q.used, rest, found[2] = strings.Cut(rest, ", limited: ")
		if found != [3]bool{true, true, true} {
			return quotaRefusal{}, false
		}
		// The list ends at the first thing that no quantity has.
		q.limited = rest
		if i := strings.IndexFunc(rest, func(r rune) bool { return r == ' ' || r == ':' || r == ';' || r == '\n' || r == '"' }); i >= 0 {
			q.limited = rest[:i]
		}
		return q, q.quota != "" && q.limited != ""
	}
	if _, rest, ok := strings.Cut(message, "failed quota: "); ok {
		name, rest, ok := strings.Cut(rest, ": must specify ")
		if !ok || name == "" {
			return quotaRefusal{}, false
		}
		line, _, _ := strings.Cut(rest, "\n")
		return quotaRefusal{quota: name, mustSpecify: line}, line != ""
	}
	return quotaRefusal{}, false
}

func (q quotaRefusal) finding(check, what string) Finding {
	if q.mustSpecify != "" {
		return Finding{Check: check, Level: Problem,
			Message: fmt.Sprintf("quota %s refuses %s: it wants %s", q.quota, what, q.mustSpecify),
			Remedy:  "set these in the task, or give the namespace a LimitRange with defaults"}
	}
	return Finding{Check: check, Level: Problem,
		Message: fmt.Sprintf("quota %s has no room for %s: it asks for %s; used are %s of %s", q.quota, what, spread(q.requested), spread(q.used), spread(q.limited)),
		Remedy:  "let other runs end or delete them, ask for less, or raise the quota; Tekton tries again every minute"}
}

// spread puts a space after the commas of a list.
func spread(list string) string { return strings.ReplaceAll(list, ",", ", ") }

// securityRefusal is what the Pod Security admission says.
type securityRefusal struct {
	level      string   // "restricted:latest"
	rules      []string // one a rule that is broken
	containers []string // that break one
}

var quoted = regexp.MustCompile(`"([a-z0-9][a-z0-9-]*)"`)

// parseSecurityRefusal reads `violates PodSecurity "restricted:latest": RULE
// (container "a" must set X), RULE (…)`.
func parseSecurityRefusal(message string) (securityRefusal, bool) {
	_, rest, ok := strings.Cut(message, `violates PodSecurity "`)
	if !ok {
		return securityRefusal{}, false
	}
	level, rest, ok := strings.Cut(rest, `": `)
	if !ok || level == "" {
		return securityRefusal{}, false
	}
	s := securityRefusal{level: level}
	// A rule is followed by who breaks it in parentheses; commas are in both.
	for len(s.rules) < 20 {
		rule, who, ok := strings.Cut(rest, " (")
		rule = strings.TrimPrefix(strings.TrimSpace(rule), ", ")
		if !ok {
			if rule = strings.TrimSpace(rule); rule != "" && len(s.rules) == 0 {
				s.rules = append(s.rules, rule)
			}
			break
		}
		detail, after, ok := strings.Cut(who, ")")
		s.rules = append(s.rules, strings.TrimSpace(rule)+" ("+detail+")")
		for _, m := range quoted.FindAllStringSubmatch(detail, -1) {
			if !slices.Contains(s.containers, m[1]) && !slices.Contains([]string{"true", "false"}, m[1]) {
				s.containers = append(s.containers, m[1])
			}
		}
		if !ok {
			break
		}
		rest = strings.TrimPrefix(strings.TrimSpace(after), ",")
		if !strings.HasPrefix(strings.TrimSpace(after), ",") {
			break
		}
	}
	return s, len(s.rules) > 0
}

// ofTekton are the containers that Tekton adds to a pod.
func ofTekton(container string) bool {
	return slices.Contains([]string{"prepare", "place-scripts", "working-dir-initializer", "affinity-assistant", "sidecar-tekton-log-results"}, container)
}

func (s securityRefusal) finding(check, what string) Finding {
	f := Finding{Check: check, Level: Problem, Details: s.rules,
		Message: fmt.Sprintf("the namespace enforces the Pod Security level %s, which refuses %s", s.level, what),
		Remedy:  "set in the task's stepTemplate: securityContext with allowPrivilegeEscalation false, capabilities.drop [ALL], runAsNonRoot true and seccompProfile RuntimeDefault"}
	if slices.ContainsFunc(s.containers, ofTekton) {
		f.Remedy = `set "set-security-context" to "true" in the ConfigMap feature-flags of Tekton's namespace: some of these containers are Tekton's own`
	}
	return f
}

// refusal explains why the API server would not create a pod.
func refusal(check, what, message string) Finding {
	if q, ok := parseQuotaRefusal(message); ok {
		return q.finding(check, what)
	}
	if s, ok := parseSecurityRefusal(message); ok {
		return s.finding(check, what)
	}
	f := Finding{Check: check, Level: Problem, Message: fmt.Sprintf("the API server does not take %s: %s", what, message)}
	if c, ok := causeOf(message); ok {
		f.Remedy = c.remedy
	}
	return f
}
