package doctor

import (
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// started adds a run whose task train has begun five minutes before noon. The
// status of the TaskRun and the specification and status of its pod are the test's.
func (w *world) started(taskStatus, podSpec, podStatus string) {
	w.yaml(`
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: run-1, namespace: team, uid: run-uid, creationTimestamp: 2026-11-30T11:55:00Z}
spec:
  pipelineRef: {name: train-and-promote}
  taskRunTemplate: {serviceAccountName: trainyard-train}
  workspaces: [{name: shared, persistentVolumeClaim: {claimName: data}}]
status:
  startTime: 2026-11-30T11:55:00Z
  conditions: [{type: Succeeded, status: Unknown, reason: Running, message: "Tasks Completed: 0 (Failed: 0, Cancelled 0), Incomplete: 1, Skipped: 0"}]
---
apiVersion: tekton.dev/v1
kind: TaskRun
metadata: {name: run-1-train, namespace: team, uid: task-uid, creationTimestamp: 2026-11-30T11:55:00Z, labels: {tekton.dev/pipelineRun: run-1, tekton.dev/pipelineTask: train}}
spec: {serviceAccountName: trainyard-train}
status: ` + taskStatus + `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: team, uid: claim-uid, creationTimestamp: 2026-11-30T11:50:00Z}
spec: {accessModes: [ReadWriteOnce], storageClassName: standard, volumeName: pv-1, resources: {requests: {storage: 1Gi}}}
status: {phase: Bound, capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce]}`)
	if podSpec == "" {
		return
	}
	w.yaml(`
apiVersion: v1
kind: Pod
metadata: {name: run-1-train-pod, namespace: team, uid: pod-uid, creationTimestamp: 2026-11-30T11:55:00Z, labels: {tekton.dev/pipelineRun: run-1}}
spec: ` + podSpec + `
status: ` + podStatus)
}

const (
	running  = `{podName: run-1-train-pod, startTime: 2026-11-30T11:55:00Z, conditions: [{type: Succeeded, status: Unknown, reason: Pending, message: pod is pending}]}`
	onNode   = `{nodeName: node-1, containers: [{name: step-train, image: example.com/trainer@sha256:1}], volumes: [{name: w, persistentVolumeClaim: {claimName: data}}]}`
	homeless = `{containers: [{name: step-train, resources: {requests: {cpu: "8", memory: 6Gi}}}], volumes: [{name: w, persistentVolumeClaim: {claimName: data}}]}`
	unfit    = `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient cpu."}]}`
)

func waitingFor(reason, message string) string {
	return `{phase: Pending, startTime: 2026-11-30T11:55:00Z, containerStatuses: [{name: step-train, image: "example.com/trainer@sha256:1", state: {waiting: {reason: ` + reason + `, message: "` + message + `"}}}]}`
}

func (w *world) event(kind, uid, reason, message string) {
	w.yaml(`apiVersion: v1
kind: Event
metadata: {name: ` + strings.ToLower(reason) + `, namespace: team}
type: Warning
reason: ` + reason + `
message: ` + "'" + message + "'" + `
lastTimestamp: 2026-11-30T11:58:00Z
involvedObject: {kind: ` + kind + `, uid: ` + uid + `}`)
}

// Each case is a run that hangs or failed for one reason, which must be the only
// problem. What is printed is in testdata.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken func(*world)
		want   expectation
	}{
		{"pod larger than every node", func(w *world) { w.started(running, homeless, unfit) },
			expectation{Problem, "pod", []string{
				"has waited for a node for 5 min 0 s: it asks for 8 CPU and 6Gi of memory",
				"node node-1: 8 CPU asked, 1400m free: of 4 allocatable, 4 pods hold 2600m",
				"most is held by research/notebook-0 1500m, research/database-0 800m, kube-system/kube-apiserver 250m",
				"the scheduler says: 0/1 nodes are available: 1 Insufficient cpu.",
				"room for at most 3750m CPU",
			}}},
		{"pod that others keep out", func(w *world) {
			w.started(running, strings.Replace(homeless, `cpu: "8"`, `cpu: "3"`, 1), unfit)
		}, expectation{Problem, "pod", []string{"it fits on node node-1 when research/notebook-0 and research/database-0 end or are scaled down (they hold 2300m CPU)"}}},
		{"pod that no node tolerates", func(w *world) {
			w.started(running, strings.Replace(homeless, `cpu: "8"`, `cpu: "1"`, 1), unfit)
			w.yaml("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nspec: {taints: [{key: gpu, value: only, effect: NoSchedule}]}\nstatus: {allocatable: {cpu: \"4\", memory: 16Gi, pods: \"110\"}, conditions: [{type: Ready, status: \"True\"}]}")
		}, expectation{Problem, "pod", []string{"node node-1 cannot take it: the pod does not tolerate its taint gpu=only:NoSchedule", "more resources would not help"}}},
		{"pod bound to an affinity assistant elsewhere", func(w *world) {
			w.started(running, `{containers: [{name: step-train}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app.kubernetes.io/instance: affinity-assistant-1, app.kubernetes.io/component: affinity-assistant}}}]}}}`, unfit)
			w.yaml("apiVersion: v1\nkind: Pod\nmetadata: {name: affinity-assistant-1-0, namespace: team, uid: aa, labels: {app.kubernetes.io/instance: affinity-assistant-1, app.kubernetes.io/component: affinity-assistant}}\nspec: {nodeName: node-2}")
			w.yaml("apiVersion: v1\nkind: Node\nmetadata: {name: node-2, labels: {kubernetes.io/hostname: node-2}}\nspec: {unschedulable: true}\nstatus: {allocatable: {cpu: \"4\", memory: 16Gi, pods: \"110\"}}")
		}, expectation{Problem, "pod", []string{"node node-1 cannot take it: the pod must be beside team/affinity-assistant-1-0, which is on node node-2", "node node-2 cannot take it: it is cordoned"}}},
		{"claim without a class", func(w *world) {
			w.started(running, homeless, `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "pod has unbound immediate PersistentVolumeClaims"}]}`)
			w.yaml("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: team, uid: claim-uid, creationTimestamp: 2026-11-30T11:50:00Z}\nspec: {accessModes: [ReadWriteOnce], storageClassName: fast}\nstatus: {phase: Pending}")
			w.yaml("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: \"40\", memory: 160Gi, pods: \"110\"}, conditions: [{type: Ready, status: \"True\"}]}")
		}, expectation{Problem, "claim", []string{"claim data is not bound: StorageClass fast does not exist; there are standard"}}},
		{"image that is not there", func(w *world) {
			w.started(running, onNode, waitingFor("ImagePullBackOff", `Back-off pulling image \"example.com/trainer@sha256:1\": ErrImagePull: failed to resolve reference \"example.com/trainer@sha256:1\": example.com/trainer@sha256:1: not found`))
		}, expectation{Problem, "image", []string{"cannot be pulled", "the image does not exist in the registry", "correct name and digest"}}},
		{"image that is tried again", func(w *world) {
			w.started(running, onNode, waitingFor("PodInitializing", ""))
			w.event("Pod", "pod-uid", "Failed", `Failed to pull image "example.com/trainer@sha256:1": dial tcp: lookup example.com: no such host`)
		}, expectation{Problem, "image", []string{"example.com/trainer@sha256:1: the name of the server is unknown to DNS"}}},
		{"registry that refuses the node", func(w *world) {
			w.started(running, onNode, waitingFor("ErrImagePull", `failed to authorize: failed to fetch anonymous token: 401 Unauthorized`))
		}, expectation{Problem, "image", []string{"refuses the credentials"}}},
		{"secret that a step needs", func(w *world) {
			w.started(running, onNode, waitingFor("CreateContainerConfigError", `secret \"s3-credentials\" not found`))
		}, expectation{Problem, "pod", []string{"container train cannot be made", `secret "s3-credentials" not found`, "create what is missing in namespace team, and start the run again if it has failed"}}},
		{"image that runs as root", func(w *world) {
			w.started(running, onNode, waitingFor("CreateContainerConfigError", `container has runAsNonRoot and image will run as root`))
		}, expectation{Problem, "pod", []string{"the image runs as root", "numeric user that is not 0"}}},
		{"program that is not in the image", func(w *world) {
			w.started(running, onNode, waitingFor("StartError", `exec: \"/cnb/process/web\": stat /cnb/process/web: no such file or directory`))
		}, expectation{Problem, "pod", []string{"cannot be started (StartError)", "correct the path, or the image"}}},
		{"volume that cannot be mounted", func(w *world) {
			w.started(running, onNode, waitingFor("ContainerCreating", ""))
			w.event("Pod", "pod-uid", "FailedMount", `MountVolume.SetUp failed for volume "ca" : configmap "ca-bundle" not found`)
		}, expectation{Problem, "pod", []string{"waits for a volume that cannot be mounted", `configmap "ca-bundle" not found`, "create what is missing"}}},
		{"volume on another node", func(w *world) {
			w.started(running, onNode, waitingFor("ContainerCreating", ""))
			w.event("Pod", "pod-uid", "FailedAttachVolume", `Multi-Attach error for volume "pv-1" Volume is already used by pod(s) other`)
		}, expectation{Problem, "pod", []string{"ReadWriteOnce is on one node at a time"}}},
		{"no network for the pod", func(w *world) {
			w.started(running, onNode, waitingFor("ContainerCreating", ""))
			w.event("Pod", "pod-uid", "FailedCreatePodSandBox", `plugin type="bridge" failed (add)`)
		}, expectation{Problem, "pod", []string{"gets no sandbox on node node-1"}}},
		{"containers that are not made, without an event", func(w *world) { w.started(running, onNode, waitingFor("ContainerCreating", "")) },
			expectation{Problem, "pod", []string{"its containers are not made; no event says why"}}},
		{"init container that does not end", func(w *world) { // I-15
			w.started(running, onNode, `{phase: Pending, initContainerStatuses: [{name: prepare, image: i, imageID: "", ready: false, restartCount: 0, state: {running: {startedAt: 2026-11-30T11:56:00Z}}}], containerStatuses: [{name: step-train, image: i, state: {waiting: {reason: PodInitializing}}}]}`)
		}, expectation{Problem, "pod", []string{"still in its init container prepare, for 4 min 0 s", "kubectl logs run-1-train-pod -c prepare"}}},
		{"node that died", func(w *world) {
			w.started(running, onNode, `{phase: Running}`)
			w.yaml("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: \"4\", memory: 16Gi, pods: \"110\"}, conditions: [{type: Ready, status: Unknown, message: Kubelet stopped posting node status.}]}")
		}, expectation{Problem, "pod", []string{"node node-1, which is not ready: Kubelet stopped posting node status."}}},
		{"pod that was deleted", func(w *world) { w.started(running, "", "") },
			expectation{Problem, "task", []string{"does not exist any more, and the task has not ended"}}},
		{"pod that does not go", func(w *world) {
			w.started(running, onNode, `{phase: Running}`)
			w.yaml("apiVersion: v1\nkind: Pod\nmetadata: {name: run-1-train-pod, namespace: team, uid: pod-uid, labels: {tekton.dev/pipelineRun: run-1}, deletionTimestamp: 2026-11-30T11:58:00Z, finalizers: [x]}\nspec: {nodeName: node-1}")
		}, expectation{Problem, "pod", []string{"should be gone for 2 min 0 s"}}},
		{"sidecar that is not ready", func(w *world) {
			w.started(running, onNode, `{phase: Running, startTime: 2026-11-30T11:55:00Z, containerStatuses: [{name: step-train, image: i, state: {running: {}}}, {name: sidecar-registry, image: i, state: {running: {}}, ready: false}]}`)
		}, expectation{Problem, "pod", []string{"the steps wait for the sidecar registry"}}},
		{"scheduling gate", func(w *world) {
			w.started(running, `{schedulingGates: [{name: example.com/queue}], containers: [{name: step-train}]}`, `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated, message: Scheduling is blocked due to non-empty scheduling gates}]}`)
		}, expectation{Problem, "pod", []string{"held back by the scheduling gate example.com/queue"}}},
		{"scheduler that is down", func(w *world) { w.started(running, homeless, `{phase: Pending}`) },
			expectation{Problem, "pod", []string{"the scheduler default-scheduler has not looked at it"}}},
		{"quota exceeded", func(w *world) {
			w.started(`{conditions: [{type: Succeeded, status: Unknown, reason: ExceededResourceQuota, message: 'TaskRun Pod exceeded available resources: pods "run-1-train-pod" is forbidden: exceeded quota: small, requested: limits.cpu=8,pods=1, used: limits.cpu=2,pods=4, limited: limits.cpu=4,pods=4'}]}`, "", "")
		}, expectation{Problem, "quota", []string{"quota small has no room for the pod of task train: it asks for limits.cpu=8, pods=1; used are limits.cpu=2, pods=4 of limits.cpu=4, pods=4"}}},
		{"Pod Security refuses Tekton's containers", func(w *world) {
			w.started(`{conditions: [{type: Succeeded, status: "False", reason: PodAdmissionFailed, message: 'pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (containers "prepare", "step-train" must set securityContext.allowPrivilegeEscalation=false), seccompProfile (pod or containers "prepare", "step-train" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'}]}`, "", "")
		}, expectation{Problem, "task", []string{"Pod Security level restricted:latest, which refuses the pod of task train", `containers "prepare", "step-train" must set securityContext.allowPrivilegeEscalation=false`, `"set-security-context" to "true"`}}},
		{"Pod Security refuses a step", func(w *world) {
			w.started(`{conditions: [{type: Succeeded, status: "False", reason: PodAdmissionFailed, message: 'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true (pod or container "step-train" must set securityContext.runAsNonRoot=true)'}]}`, "", "")
		}, expectation{Problem, "task", []string{"set in the task's stepTemplate"}}},
		{"affinity assistant that is refused", func(w *world) {
			w.started(running, `{containers: [{name: step-train}]}`, `{phase: Pending}`)
			w.remove("Pod", "run-1-train-pod")
			w.remove("TaskRun", "run-1-train")
			w.yaml("apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata: {name: run-1-train, namespace: team, creationTimestamp: 2026-11-30T11:59:50Z, labels: {tekton.dev/pipelineRun: run-1, tekton.dev/pipelineTask: train}}\nstatus: {}")
			w.yaml("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: affinity-assistant-1, namespace: team, uid: set-uid, labels: {tekton.dev/pipelineRun: run-1}}")
			w.event("StatefulSet", "set-uid", "FailedCreate", `create Pod affinity-assistant-1-0 in StatefulSet affinity-assistant-1 failed error: pods "affinity-assistant-1-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "affinity-assistant" must set securityContext.allowPrivilegeEscalation=false)`)
		}, expectation{Problem, "affinity-assistant", []string{"without which no pod of the run gets a node", `"set-security-context"`}}},
		{"task that waits for its bundle", func(w *world) {
			w.started(`{conditions: [{type: Succeeded, status: Unknown, reason: ResolvingTaskRef, message: 'TaskRun team/run-1-train awaiting remote resource'}]}`, "", "")
		}, expectation{Problem, "task", []string{"waits for its definition for 5 min 0 s", "resolvers"}}},
		{"Tekton does not look at it", func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: run-1, namespace: team, creationTimestamp: 2026-11-30T11:55:00Z}\nspec: {taskRunTemplate: {serviceAccountName: trainyard-train}}")
		}, expectation{Problem, "run", []string{"Tekton has taken no notice of it, 5 min 0 s after it was created"}}},
		{"held back", func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: run-1, namespace: team, creationTimestamp: 2026-11-30T11:55:00Z}\nspec: {status: PipelineRunPending, taskRunTemplate: {serviceAccountName: trainyard-train}}")
		}, expectation{Problem, "run", []string{"held back", "remove spec.status"}}},
		{"pipeline that is not there", func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: run-1, namespace: team, creationTimestamp: 2026-11-30T11:55:00Z}\nspec: {taskRunTemplate: {serviceAccountName: trainyard-train}}\nstatus: {conditions: [{type: Succeeded, status: \"False\", reason: CouldntGetPipeline, message: 'Error retrieving pipeline for pipelinerun team/run-1: pipelines.tekton.dev \"x\" not found'}]}")
		}, expectation{Problem, "run", []string{"CouldntGetPipeline", "correct pipelineRef"}}},
		{"account that is not there", func(w *world) {
			w.started(running, onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
			w.remove("ServiceAccount", "trainyard-train")
		}, expectation{Problem, "service-account", []string{"trainyard-train does not exist"}}},
		{"step killed for memory", func(w *world) {
			w.started(`{podName: run-1-train-pod, conditions: [{type: Succeeded, status: "False", reason: StepOOM, message: "oom"}], steps: [{name: train, container: step-train, terminated: {exitCode: 137, reason: OOMKilled}}]}`, "", "")
		}, expectation{Problem, "task", []string{"it used more memory than its limit", "raise the memory limit"}}},
		{"step that ended while the task goes on", func(w *world) { // I-50
			w.started(`{podName: run-1-train-pod, conditions: [{type: Succeeded, status: Unknown, reason: Running}], steps: [{name: train, container: step-train, terminated: {exitCode: 137, finishedAt: 2026-11-30T11:57:00Z}}, {name: report, container: step-report, running: {}}]}`, onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
		}, expectation{Problem, "task", []string{"step train ended with exit code 137 3 min 0 s ago, and the task goes on waiting"}}},
		{"store down while it ran", func(w *world) {
			w.started(failedWith(4), "", "")
			w.logs = func(string, string) []string {
				return []string{"step 100 loss 3.2", `trainer: put "runs/run-1/ckpt" in bucket "models" at http://s3:7070: dial tcp 10.0.0.1:7070: connect: connection refused`, `[{"key":"StartedAt","value":"x","type":3}]`, ""}
			}
		}, expectation{Problem, "task", []string{"task train failed: step train ended with exit code 4 (the store, the disk or the network failed); it looks as if nothing listens at this address", `put "runs/run-1/ckpt"`, "start the server"}}},
		// What Tekton 1.15 on Kubernetes 1.36 said of such runs.
		{"image that was not there", func(w *world) {
			w.started(`{podName: run-1-train-pod, conditions: [{type: Succeeded, status: "False", reason: TaskRunImagePullFailed, message: 'the step "work" in TaskRun "run-1-train" failed to pull the image "". The pod errored with the message: "Back-off pulling image "10.0.0.1:5000/none@sha256:00": ErrImagePull: rpc error: code = NotFound desc = failed to resolve reference "10.0.0.1:5000/none@sha256:00": 10.0.0.1:5000/none@sha256:00: not found."'}],
			  steps: [{name: work, container: step-work, terminationReason: TaskRunImagePullFailed, terminated: {exitCode: 1, reason: TaskRunImagePullFailed, message: Step work terminated as pod run-1-train-pod is terminated}}]}`, "", "")
		}, expectation{Problem, "image", []string{"task train failed: an image cannot be pulled: 10.0.0.1:5000/none@sha256:00: the image does not exist in the registry"}}},
		{"secret that a step needed", func(w *world) {
			w.started(`{podName: run-1-train-pod, conditions: [{type: Succeeded, status: "False", reason: CreateContainerConfigError, message: Failed to create pod due to config error}],
			  steps: [{name: work, container: step-work, waiting: {reason: CreateContainerConfigError, message: "couldn't find key accesskey in Secret team/s3-credentials"}}]}`, "", "")
		}, expectation{Problem, "pod", []string{"task train failed: container work cannot be made", "couldn't find key accesskey in Secret team/s3-credentials", "create what is missing"}}},
		{"account that was not there", func(w *world) {
			w.started(`{conditions: [{type: Succeeded, status: "False", reason: PodCreationFailed, message: 'failed to create task run pod "x": translating TaskSpec to Pod: serviceaccounts "nobody" not found. Maybe invalid TaskSpec'}], steps: [{name: work}]}`, "", "")
		}, expectation{Problem, "task", []string{"the ServiceAccount does not exist", "create it, or name another in the run"}}},
		{"affinity assistant without a volume", func(w *world) {
			w.started(running, `{containers: [{name: step-train}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app.kubernetes.io/instance: affinity-assistant-1, app.kubernetes.io/component: affinity-assistant}}}]}}, volumes: [{name: w, persistentVolumeClaim: {claimName: data}}]}`, unfit)
			w.yaml("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: affinity-assistant-1, namespace: team, uid: set-uid, labels: {tekton.dev/pipelineRun: run-1}}")
			w.yaml("apiVersion: v1\nkind: Pod\nmetadata: {name: affinity-assistant-1-0, namespace: team, uid: aa, creationTimestamp: 2026-11-30T11:55:00Z}\nspec: {containers: [{name: c}], volumes: [{name: w, persistentVolumeClaim: {claimName: data}}]}\nstatus: " + unfit)
			w.yaml("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: team, uid: claim-uid, creationTimestamp: 2026-11-30T11:50:00Z}\nspec: {accessModes: [ReadWriteOnce], storageClassName: fast}\nstatus: {phase: Pending}")
		}, expectation{Problem, "claim", []string{"StorageClass fast does not exist"}}},
		{"claim full", func(w *world) {
			w.started(failedWith(4), "", "")
			w.logs = func(string, string) []string {
				return []string{"trainer: write runs/run-1/train.bin: no space left on device"}
			}
		}, expectation{Problem, "task", []string{"a disk is full", "enlarge the claim"}}},
		{"gate that blocked", func(w *world) {
			w.started(strings.Replace(failedWith(1), "command: [/cnb/process/trainer]", "command: [/cnb/process/trainer], args: [gate, --run-dir, x]", 1), "", "")
			w.logs = func(string, string) []string { return []string{"blocked: val_loss 7.2233 is above 6"} }
		}, expectation{Problem, "task", []string{`ended with exit code 1 (the run failed, or the verdict is "no")`, "blocked: val_loss 7.2233 is above 6", "gate_report.json"}}},
		{"task that ran out of time", func(w *world) {
			w.started(`{conditions: [{type: Succeeded, status: "False", reason: TaskRunTimeout, message: 'TaskRun "run-1-train" failed to finish within "1h0m0s"'}]}`, "", "")
		}, expectation{Problem, "task", []string{"ran into its timeout of 1h0m0s and its pod was deleted, with its log"}}},
		{"two claims in one task", func(w *world) { // I-11
			w.started(`{conditions: [{type: Succeeded, status: "False", reason: TaskRunValidationFailed, message: 'invalid input params for task : more than one PersistentVolumeClaim is bound'}]}`, "", "")
		}, expectation{Problem, "task", []string{"mounts two claims", "sub-paths"}}},
		{"config map of a task that has not begun", func(w *world) { // I-37
			w.started(running, onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
			pr := w.find("PipelineRun", "run-1")
			pr.Status.PipelineSpec = w.pipelineSpec(`{tasks: [{name: train, taskRef: {name: train}}, {name: next, taskSpec: {steps: [{name: s, image: i, command: [c], env: [{name: X, valueFrom: {configMapKeyRef: {name: later, key: k}}}]}]}}]}`)
		}, expectation{Problem, "reference", []string{"task next needs ConfigMap later"}}},
		{"run that was cancelled", func(w *world) { w.ended("Cancelled", `PipelineRun "run-1" was cancelled`) },
			expectation{Problem, "run", []string{"it was cancelled"}}},
		{"run that ran out of time", func(w *world) { w.ended("PipelineRunTimeout", `PipelineRun "run-1" failed to finish within "1h0m0s"`) },
			expectation{Problem, "run", []string{"it ran into its timeout", "raise spec.timeouts"}}},
		{"run without a parameter", func(w *world) {
			w.ended("ParameterMissing", `PipelineRun team/run-1 parameters are missing some parameters required: [url]`)
		},
			expectation{Problem, "run", []string{"ParameterMissing", "[url]", "give the parameters that the message names"}}},
		{"run that says only that it failed", func(w *world) { w.ended("Failed", "Tasks Completed: 3 (Failed: 1)") },
			expectation{Problem, "run", []string{"Tasks Completed: 3 (Failed: 1)"}}},
		{"workspaces from what does not exist", func(w *world) {
			w.started(running, onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
			pr := w.find("PipelineRun", "run-1")
			pr.Spec.Workspaces = append(pr.Spec.Workspaces, pipelinev1.WorkspaceBinding{Name: "login", Secret: &corev1.SecretVolumeSource{SecretName: "git-ssh"}},
				pipelinev1.WorkspaceBinding{Name: "settings", ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "trainyard-store"}}})
		}, expectation{Problem, "reference", []string{"workspace login needs Secret git-ssh"}}},
		{"claim of a template that does not come", func(w *world) {
			w.started(running, onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
			w.find("PipelineRun", "run-1").Spec.Workspaces = []pipelinev1.WorkspaceBinding{{Name: "shared", VolumeClaimTemplate: &corev1.PersistentVolumeClaim{}}}
		}, expectation{Problem, "claim", []string{"claim pvc-", "(workspace shared) does not exist"}}},
		{"parameters of the run", func(w *world) {
			w.started(running, onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
			w.insecureHosts = nil
			w.find("PipelineRun", "run-1").Spec.Params = pipelinev1.Params{
				{Name: "builder-image", Value: *pipelinev1.NewStructuredValues(w.host() + "/builder:gone")},
				{Name: "insecure-registries", Value: *pipelinev1.NewStructuredValues("", w.host())},
				{Name: "store", Value: *pipelinev1.NewStructuredValues("s3://models/prefix")},
			}
		}, expectation{Problem, "builder", []string{"/builder:gone", "404"}}},
		{"task run of its own", func(w *world) {
			w.started(running, homeless, unfit)
			w.remove("PipelineRun", "run-1")
			w.remove("TaskRun", "run-1-train")
			w.yaml("apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata: {name: run-1, namespace: team, creationTimestamp: 2026-11-30T11:55:00Z}\nspec: {serviceAccountName: trainyard-train}\nstatus: " + running)
		}, expectation{Problem, "pod", []string{"the pod of task run-1 (run-1-train-pod)", "it asks for 8 CPU and 6Gi of memory"}}},
		{"several nodes", func(w *world) {
			w.started(running, homeless, unfit)
			for _, n := range []string{"a", "b", "c", "d"} {
				w.yaml("apiVersion: v1\nkind: Node\nmetadata: {name: gpu-" + n + "}\nspec: {taints: [{key: gpu, effect: NoSchedule}]}\nstatus: {allocatable: {cpu: \"64\", memory: 256Gi, pods: \"110\"}}")
			}
			for _, n := range []string{"2", "3", "4", "5", "6", "7"} {
				w.yaml("apiVersion: v1\nkind: Node\nmetadata: {name: node-" + n + "}\nstatus: {allocatable: {cpu: \"" + n + "\", memory: 4Gi, pods: \"110\"}}")
			}
		}, expectation{Problem, "pod", []string{"node node-7: 8 CPU asked, and it has 7 in all", "3 more nodes lack more", "nodes gpu-a, gpu-b, gpu-c and 1 more cannot take it: the pod does not tolerate its taint gpu:NoSchedule", "node node-7 has room for at most 7 CPU and 4Gi of memory"}}},
		{"a far node that can be freed", func(w *world) {
			w.started(running, strings.Replace(homeless, `cpu: "8"`, `cpu: "3900m"`, 1), unfit) // 3750m can be free on node-1
			w.yaml("apiVersion: v1\nkind: Node\nmetadata: {name: node-2}\nstatus: {allocatable: {cpu: \"8\", memory: 64Gi, pods: \"110\"}}")
			w.yaml("apiVersion: v1\nkind: Pod\nmetadata: {name: batch, namespace: research, uid: b}\nspec: {nodeName: node-2, containers: [{name: c, resources: {requests: {cpu: \"9\"}}}]}\nstatus: {phase: Running}")
		}, expectation{Problem, "pod", []string{"it fits on node node-2 when research/batch ends or is scaled down (it holds 9 CPU)"}}},
		{"sizes of steps by the run", func(w *world) {
			w.started(running, onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
			pr := w.find("PipelineRun", "run-1")
			pr.Status.PipelineSpec = w.pipelineSpec(`{tasks: [{name: train, taskRef: {name: train}}, {name: next, taskSpec: {steps: [{name: s, image: i, command: [c]}, {name: t, image: i, command: [c], computeResources: {requests: {cpu: "1"}}}]}}]}`)
			pr.Spec.TaskRunSpecs = w.taskRunSpecs(`[{pipelineTaskName: next, stepSpecs: [{name: s, computeResources: {requests: {cpu: "4"}}}]}]`)
		}, expectation{Problem, "capacity", []string{"task next would wait for a node: it asks for 5 CPU"}}},
		{"the newest event counts", func(w *world) {
			w.started(running, onNode, waitingFor("ContainerCreating", ""))
			w.event("Pod", "pod-uid", "FailedMount", "the old reason")
			w.event("Pod", "pod-uid", "FailedAttachVolume", "the new reason")
			for _, o := range w.kube {
				if ev, ok := o.(*corev1.Event); ok && ev.Reason == "FailedAttachVolume" {
					ev.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(noon())}
				}
			}
		}, expectation{Problem, "pod", []string{"the new reason"}}},
		{"task that has not begun and is too large", func(w *world) {
			w.started(running, onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
			pr := w.find("PipelineRun", "run-1")
			pr.Status.PipelineSpec = w.pipelineSpec(`{tasks: [{name: train, taskRef: {name: train}}, {name: next, taskSpec: {steps: [{name: s, image: i, command: [c]}]}}]}`)
			pr.Spec.TaskRunSpecs = w.taskRunSpecs(`[{pipelineTaskName: next, computeResources: {requests: {memory: 64Gi}}}]`)
		}, expectation{Problem, "capacity", []string{"task next would wait for a node: it asks for 64Gi of memory", "room for at most 15.5Gi of memory"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.broken(w)
			r := w.examine("run-1")
			if !c.want.met(r) {
				t.Errorf("no %s of %s that says %q", c.want.level, c.want.check, c.want.says)
			}
			if n := r.Count(Problem); n != 1 {
				t.Errorf("%d problems, want 1", n)
			}
			w.golden("run "+c.name, r)
			if t.Failed() {
				r.Write(testWriter{t})
			}
		})
	}
}

// ended adds a run that failed as a whole.
func (w *world) ended(reason, message string) {
	w.yaml("apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: run-1, namespace: team, creationTimestamp: 2026-11-30T11:55:00Z}\nspec: {taskRunTemplate: {serviceAccountName: trainyard-train}}\nstatus: {conditions: [{type: Succeeded, status: \"False\", reason: " + reason + ", message: '" + message + "'}]}")
}

func failedWith(code int) string {
	return `{podName: run-1-train-pod, conditions: [{type: Succeeded, status: "False", reason: Failed, message: '"step-train" exited with code ` + string(rune('0'+code)) + `'}],
  taskSpec: {steps: [{name: train, image: i, command: [/cnb/process/trainer]}]},
  steps: [{name: train, container: step-train, terminated: {exitCode: ` + string(rune('0'+code)) + `, reason: Error}}]}`
}

func TestRunsThatAreWell(t *testing.T) {
	for name, c := range map[string]struct {
		set func(*world)
		say string
	}{
		"succeeded": {func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: run-1, namespace: team}\nstatus: {conditions: [{type: Succeeded, status: \"True\", reason: Succeeded, message: Tasks Completed}]}")
		}, "it succeeded"},
		"works": {func(w *world) {
			w.started(`{podName: run-1-train-pod, startTime: 2026-11-30T11:55:00Z, conditions: [{type: Succeeded, status: Unknown, reason: Running}], steps: [{name: train, container: step-train, running: {startedAt: 2026-11-30T11:55:20Z}}]}`,
				onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
		}, "task train works: step train, 5 min 0 s after the task began"},
		"its task was changed after it began": {func(w *world) {
			w.started(running, onNode, `{phase: Running, containerStatuses: [{name: step-train, image: i, state: {running: {}}}]}`)
			w.find("PipelineRun", "run-1").Status.PipelineSpec = w.pipelineSpec(`{tasks: [{name: train, taskRef: {name: train}}, {name: report, taskRef: {name: report}}]}`)
			w.remove("Task", "train")
		}, "1 task found"},
		"pulls": {func(w *world) {
			w.started(running, onNode, waitingFor("ContainerCreating", ""))
			w.event("Pod", "pod-uid", "Pulling", `Pulling image "example.com/trainer@sha256:1"`)
		}, "is pulling example.com/trainer@sha256:1"},
		"has just begun": {func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: run-1, namespace: team, creationTimestamp: 2026-11-30T11:59:55Z}\nspec: {taskRunTemplate: {serviceAccountName: trainyard-train}}")
		}, "it was created 5 s ago"},
		"a task run": {func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata: {name: run-1, namespace: team}\nstatus: {conditions: [{type: Succeeded, status: \"True\"}]}")
		}, "TaskRun run-1 succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.set(w)
			r := w.examine("run-1")
			found := false
			for _, f := range r.Findings {
				found = found || strings.Contains(f.Message, c.say)
			}
			if r.Count(Problem) > 0 || !found {
				r.Write(testWriter{t})
				t.Errorf("%d problems; nothing says %q", r.Count(Problem), c.say)
			}
		})
	}
}

func TestRunThatDoesNotExist(t *testing.T) {
	w := newWorld(t)
	_, err := w.doctor().Run(t.Context(), "gone", Options{Namespace: ns})
	if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "no PipelineRun and no TaskRun gone in namespace team") {
		t.Errorf("%v", err)
	}
}
