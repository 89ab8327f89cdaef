package stage

import "testing"

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 reasons", 1: "1 reason", 2: "2 reasons"} {
		if got := counted(n, "reason"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
