#!/usr/bin/env bash
# Trains fifty steps in differently compiled tests and fails unless each
# instruction set ends with the same weights in all of them: the compiler may
# fuse x*y+z with GOAMD64=v3 and on arm64, which the code must not let it.
#
# arm64 runs under Debian's qemu-user where that is installed; AVX2 and AVX-512
# are compared where the machine has them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../trainer"

weights() {
	go test -count=1 -run '^TestFiftyStepsGiveTheSameWeights$' -v "$@" ./internal/gpt |
		sed -n 's/.*: weights \([a-z0-9]* [0-9a-f]*\)$/\1/p'
}

seen=$(GOAMD64=v1 weights | sed 's/^/amd64.v1 /')
if grep -qw avx2 /proc/cpuinfo; then
	seen+=$'\n'$(GOAMD64=v3 weights | sed 's/^/amd64.v3 /')
fi
if command -v qemu-aarch64 >/dev/null; then
	seen+=$'\n'$(GOARCH=arm64 CGO_ENABLED=0 weights -exec qemu-aarch64 | sed 's/^/arm64 /')
fi
printf '%s\n' "$seen"
awk '
	$2 in weights && weights[$2] != $3 { print $2 ": the builds end with different weights"; bad = 1 }
	NF == 3 { weights[$2] = $3; n++ }
	END { if (!n) print "no weights were printed"; exit bad || !n }
' <<<"$seen" >&2
