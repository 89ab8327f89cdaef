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
if (($(cut -d' ' -f2 <<<"$seen" | sort -u | wc -l) == 0)); then
	echo "no weights were printed" >&2
	exit 1
fi
for isa in $(cut -d' ' -f2 <<<"$seen" | sort -u); do
	if (($(awk -v isa="$isa" '$2 == isa { print $3 }' <<<"$seen" | sort -u | wc -l) != 1)); then
		echo "$isa: the builds end with different weights" >&2
		exit 1
	fi
done
