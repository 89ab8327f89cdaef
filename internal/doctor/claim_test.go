package doctor

import (
	"strings"
	"testing"
)

func claim(fields string) string {
	return `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: team, uid: claim-uid, creationTimestamp: 2026-11-30T11:50:00Z}
` + fields
}

func volume(name, spec string) string {
	return `apiVersion: v1
kind: PersistentVolume
metadata: {name: ` + name + `, labels: {disk: ssd}}
spec: ` + spec
}

const bound = `spec: {accessModes: [ReadWriteOnce], storageClassName: standard, volumeName: pv-1}
status: {phase: Bound, accessModes: [ReadWriteOnce], capacity: {storage: 1536Mi}}`

// Each case is a claim that a run is about to use, and the one thing to say of it.
func TestClaim(t *testing.T) {
	static := claim(`spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 5Gi}}, selector: {matchLabels: {disk: ssd}}}
status: {phase: Pending}`)
	for _, c := range []struct {
		name string
		set  func(*world)
		want expectation
	}{
		{"bound", func(w *world) { w.yaml(claim(bound)) },
			expectation{OK, "claim", []string{"claim data is bound to volume pv-1: 1.5Gi, ReadWriteOnce"}}},
		{"not there", func(*world) {}, expectation{Problem, "claim", []string{"claim data does not exist in namespace team", "pv/"}}},
		{"being deleted", func(w *world) {
			w.yaml(strings.Replace(claim(bound), "uid: claim-uid,", "uid: claim-uid, deletionTimestamp: 2026-11-30T11:59:00Z, finalizers: [kubernetes.io/pvc-protection],", 1))
		}, expectation{Problem, "claim", []string{"is being deleted and waits for the pods that mount it"}}},
		{"lost", func(w *world) { w.yaml(claim("spec: {volumeName: pv-1}\nstatus: {phase: Lost}")) },
			expectation{Problem, "claim", []string{"is lost: its volume pv-1 does not exist any more"}}},
		{"read only", func(w *world) { w.yaml(strings.ReplaceAll(claim(bound), "ReadWriteOnce", "ReadOnlyMany")) },
			expectation{Problem, "claim", []string{"ReadOnlyMany: the tasks have to write to it"}}},
		{"one pod only", func(w *world) { w.yaml(strings.ReplaceAll(claim(bound), "ReadWriteOnce", "ReadWriteOncePod")) },
			expectation{Problem, "claim", []string{"only one pod at a time", "affinity assistant"}}},
		{"in use", func(w *world) {
			w.yaml(claim(bound))
			w.yaml("apiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: team}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}\nstatus: {phase: Running}")
		}, expectation{Warning, "claim", []string{"mounted by other pods too: other", "volumeClaimTemplate"}}},
		{"was in use", func(w *world) {
			w.yaml(claim(bound))
			w.yaml("apiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: team}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}\nstatus: {phase: Succeeded}")
		}, expectation{OK, "claim", []string{"is bound"}}},
		{"waits for its first pod", func(w *world) { w.yaml(claim("spec: {storageClassName: standard}\nstatus: {phase: Pending}")) },
			expectation{OK, "claim", []string{"StorageClass standard makes one when the first pod that mounts it gets a node"}}},
		{"class by the old annotation", func(w *world) {
			w.yaml(strings.Replace(claim("spec: {}\nstatus: {phase: Pending}"), "uid: claim-uid,", "uid: claim-uid, annotations: {volume.beta.kubernetes.io/storage-class: standard},", 1))
		}, expectation{OK, "claim", []string{"StorageClass standard makes one"}}},
		{"no class and no default", func(w *world) {
			w.yaml("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: standard}\nprovisioner: x")
			w.yaml(claim("spec: {}\nstatus: {phase: Pending}"))
		}, expectation{Problem, "claim", []string{"names no StorageClass and the cluster has no default", "mark one as default: standard"}}},
		{"class that is not there", func(w *world) { w.yaml(claim("spec: {storageClassName: fast}\nstatus: {phase: Pending}")) },
			expectation{Problem, "claim", []string{"StorageClass fast does not exist; there are standard"}}},
		{"class that may not be seen", func(w *world) {
			w.change = forbid("storageclasses")
			w.yaml(claim("spec: {storageClassName: fast}\nstatus: {phase: Pending}"))
		}, expectation{Problem, "claim", []string{"StorageClass fast leaves it to its provisioner, which has not made a volume"}}},
		{"provisioner that fails", func(w *world) {
			w.yaml(claim("spec: {storageClassName: standard}\nstatus: {phase: Pending}"))
			w.event("PersistentVolumeClaim", "claim-uid", "ProvisioningFailed", "out of space")
		}, expectation{Problem, "claim", []string{"StorageClass standard could not make a volume: out of space", "rancher.io/local-path"}}},
		{"provisioner that sleeps", func(w *world) {
			w.yaml("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: slow}\nprovisioner: example.com/slow")
			w.yaml(claim("spec: {storageClassName: slow}\nstatus: {phase: Pending}"))
		}, expectation{Problem, "claim", []string{"not bound, 10 min 0 s after it was created", "leaves it to example.com/slow"}}},
		{"provisioner at work", func(w *world) {
			w.yaml("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: slow}\nprovisioner: example.com/slow")
			w.yaml(strings.Replace(claim("spec: {storageClassName: slow}\nstatus: {phase: Pending}"), "11:50:00", "11:59:50", 1))
		}, expectation{OK, "claim", []string{"StorageClass slow is making one"}}},
		{"no volume at all", func(w *world) { w.yaml(static) },
			expectation{Problem, "claim", []string{"its storageClassName is empty, so it takes only a volume that somebody made, and none matches"}}},
		{"volume of another claim", func(w *world) {
			w.yaml(static + "\n---\n" + volume("pv-1", `{claimRef: {namespace: x, name: z}}`+"\nstatus: {phase: Released}"))
		}, expectation{Problem, "claim", []string{"volume pv-1: it belongs to claim x/z (Released)"}}},
		{"volume of another class", func(w *world) {
			w.yaml(static + "\n---\n" + volume("pv-1", `{storageClassName: manual}`))
		}, expectation{Problem, "claim", []string{`volume pv-1: its StorageClass is "manual", the claim's ""`}}},
		{"volume that is too small", func(w *world) {
			w.yaml(static + "\n---\n" + volume("pv-1", `{capacity: {storage: 1Gi}}`))
		}, expectation{Problem, "claim", []string{"volume pv-1: it has 1Gi, the claim asks for 5Gi"}}},
		{"volume with another access mode", func(w *world) {
			w.yaml(static + "\n---\n" + volume("pv-1", `{capacity: {storage: 5Gi}, accessModes: [ReadOnlyMany]}`))
		}, expectation{Problem, "claim", []string{"volume pv-1: its access modes are ReadOnlyMany, the claim asks for ReadWriteOnce"}}},
		{"volume with other labels", func(w *world) {
			w.yaml(strings.Replace(static, "disk: ssd", "disk: tape", 1) + "\n---\n" + volume("pv-1", `{capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce]}`))
		}, expectation{Problem, "claim", []string{"volume pv-1: its labels do not match the claim's selector disk=tape"}}},
		{"block volume", func(w *world) {
			w.yaml(static + "\n---\n" + volume("pv-1", `{capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce], volumeMode: Block}`))
		}, expectation{Problem, "claim", []string{"volume pv-1: its volume mode is Block, the claim's Filesystem"}}},
		{"volume that matches", func(w *world) {
			w.yaml(static + "\n---\n" + volume("pv-1", `{capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce]}`))
		}, expectation{OK, "claim", []string{"volume pv-1 matches"}}},
		{"class without a provisioner", func(w *world) {
			w.yaml("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: manual}\nprovisioner: kubernetes.io/no-provisioner")
			w.yaml(claim("spec: {storageClassName: manual}\nstatus: {phase: Pending}"))
		}, expectation{Problem, "claim", []string{"StorageClass manual makes no volumes, and none that somebody made matches"}}},
		{"named volume that is not there", func(w *world) { w.yaml(claim("spec: {volumeName: pv-9}\nstatus: {phase: Pending}")) },
			expectation{Problem, "claim", []string{"asks for volume pv-9, which does not exist"}}},
		{"named volume that is too small", func(w *world) {
			w.yaml(claim("spec: {volumeName: pv-1, storageClassName: \"\", resources: {requests: {storage: 5Gi}}}\nstatus: {phase: Pending}") + "\n---\n" + volume("pv-1", `{capacity: {storage: 1Gi}}`))
		}, expectation{Problem, "claim", []string{"asks for volume pv-1: it has 1Gi, the claim asks for 5Gi"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.options.Claim = "data"
			c.set(w)
			r := w.examine("")
			problems := 0
			if c.want.level == Problem {
				problems = 1
			}
			if !c.want.met(r) || r.Count(Problem) != problems {
				t.Errorf("no %s that says %q, or not the only problem", c.want.level, c.want.says)
				r.Write(testWriter{t})
			}
		})
	}
}
