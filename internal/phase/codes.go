package phase

import (
	"fmt"
	"strings"
	"syscall"
)

// Code is an exit code of the lifecycle.
type Code struct {
	Code           int
	Reason, Remedy string
}

// Codes is the table of the lifecycle's exit codes, of platform interface 0.12 to
// 0.15. docs/exit-codes.md shows it.
func Codes() []Code {
	return []Code{
		{1, "the lifecycle failed", "read its last lines"},
		{3, "an argument of the lifecycle is wrong", "read its last lines; with a builder that this task accepted this is a fault of the task"},
		{11, "the lifecycle does not know the platform API", "use the builder that was planned with"},
		{12, "the lifecycle does not know the API of a buildpack", "use a builder whose lifecycle and buildpacks fit"},
		{20, "no group of buildpacks wants this source", "check what project.toml includes, and that the builder is for this language"},
		{21, "no group of buildpacks wants this source, and a buildpack failed", "read what the buildpacks say, often about a setting in project.toml"},
		{22, "detection failed", "read its last lines"},
		{32, "the image or a base cannot be read or written", "check image names, credentials and insecure registries"},
		{42, "the cache cannot be restored", "check the cache image and credentials, or build without a cache"},
		{51, "a buildpack failed while it built", "read its output: as a rule the compiler's errors"},
		{52, "building failed", "read its last lines"},
		{62, "the image cannot be exported", "read its last lines: a process type that no buildpack made, or a registry that refuses"},
		{91, "an image extension failed", "use a builder without extensions"},
		{92, "generating for image extensions failed", "use a builder without extensions"},
		{102, "extending a base image failed", "use a builder without extensions"},
	}
}

// hints are words in a phase's output that tell more than its exit code. The first
// that is found wins.
func hints() []struct{ words, reason, remedy string } {
	return []struct{ words, reason, remedy string }{
		// I-05
		{"to default but it doesn't exist", "the default process type is one that no buildpack made", "leave the parameter process-type empty: Go buildpacks name processes after the program, not web"},
		// I-03, I-04
		{"failed to exec as user", "the step runs as another user than the builder's buildpacks", "take runAsUser and runAsGroup out of the pod, or set them to the builder's CNB_USER_ID and CNB_GROUP_ID"},
		// I-08
		{`failed to satisfy "go" dependency version constraint`, "the builder offers no Go version that go.mod accepts", "use a newer builder, or lower the go line of go.mod"},
		// I-65
		{"error obtaining VCS status", "go asks git about a source that has no .git here", "set -buildvcs=false in BP_GO_BUILD_FLAGS"},
		{"requires go >= ", "a module wants a newer Go than the builder offers", "use a newer builder"},
		{"certificate signed by unknown authority", "a certificate is not trusted in the build", "put the authority's certificate into the ConfigMap of the parameter ca-config-map"},
		{"missing go.sum entry", "go.sum is not complete", "run go mod tidy and commit go.sum"},
		{"inconsistent vendoring", "vendor/ does not fit go.mod", "run go mod vendor and commit vendor/"},
		{"GOPROXY list is not the empty string", "GOPROXY has no usable entry", "set the parameter goproxy, or vendor the modules"},
		{"proxy.golang.org", "Go's default module proxy cannot be used from here", "set the parameter goproxy to a proxy that can, or vendor the modules"},
		{"server gave HTTP response to HTTPS client", "a registry speaks plain http", "list it in the parameter insecure-registries, if it may be insecure"},
		{"no space left on device", "the node's disk is full", "free it, or give the node more"},
	}
}

// explain returns the sentence for the end of a phase.
func explain(name string, code int, output string) string {
	reason, remedy := "the lifecycle ended in a way that is not in its table", "read its last lines"
	for _, c := range Codes() {
		if c.Code == code {
			reason, remedy = c.Reason, c.Remedy
		}
	}
	if code == 128+int(syscall.SIGKILL) {
		reason, remedy = "it was killed, as a rule for want of memory", "raise the memory limit of the step"
	}
	for _, h := range hints() {
		if strings.Contains(output, h.words) {
			reason, remedy = h.reason, h.remedy
			break
		}
	}
	return fmt.Sprintf("%s ended with %d: %s: %s", name, code, reason, remedy)
}
