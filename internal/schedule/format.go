package schedule

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount writes a quantity with its resource, as a person would: "800m CPU",
// "1.5Gi of memory", "2 nvidia.com/gpu".
func Amount(name corev1.ResourceName, q resource.Quantity) string {
	switch name {
	case corev1.ResourceCPU:
		return Quantity(name, q) + " CPU"
	case corev1.ResourceMemory:
		return Quantity(name, q) + " of memory"
	case corev1.ResourceEphemeralStorage:
		return Quantity(name, q) + " of ephemeral storage"
	}
	return Quantity(name, q) + " " + string(name)
}

// Quantity writes a quantity so that Kubernetes would read it back: CPU in whole
// cores or milli, bytes in the largest binary unit, with one digit when it is not
// whole. Bytes are rounded down: what is free is never written as more.
func Quantity(name corev1.ResourceName, q resource.Quantity) string {
	switch name {
	case corev1.ResourceCPU:
		if m := q.MilliValue(); m%1000 != 0 {
			return strconv.FormatInt(m, 10) + "m"
		}
		return strconv.FormatInt(q.Value(), 10)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage:
		return bytes(q.Value())
	}
	return q.String()
}

func bytes(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	unit, rest := 0, int64(0) // rest: of 1024 parts of the unit
	for unit < len(units)-1 && n >= 1024 {
		unit++
		n, rest = n/1024, n%1024
	}
	if tenth := rest * 10 / 1024; tenth > 0 && n < 100 {
		return fmt.Sprintf("%s%d.%d%s", sign, n, tenth, units[unit])
	}
	return fmt.Sprintf("%s%d%s", sign, n, units[unit])
}
