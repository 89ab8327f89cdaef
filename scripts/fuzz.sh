#!/usr/bin/env bash
# Fuzz every Fuzz function of the given modules, each for $FUZZTIME.
#
# usage: fuzz.sh MODULE_DIR ...
#
# FUZZTIME   time for each target (default 30s)
# FUZZJOBS   targets at a time, one worker each (default: the processors)
# FUZZONLY   a regular expression on "package.Target", to run a few
# FUZZSKIP   the same, to leave some out
#
# A failing input is written to the package's testdata/fuzz: commit it with the
# fix.
set -euo pipefail

fuzztime=${FUZZTIME:-30s}

# fuzz_one MODULE PACKAGE TARGET: prints one line, and the log when it failed.
fuzz_one() {
	local module=$1 package=$2 target=$3 log try start=$SECONDS
	log=$(mktemp)
	for try in 1 2; do
		if (cd "$module" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -parallel 1 "$package") >"$log" 2>&1; then
			printf 'ok    %-60s %4ds  %s\n' "$package.$target" $((SECONDS - start)) "$(grep -oE 'execs: [0-9]+' "$log" | tail -n 1)"
			rm -f "$log"
			return 0
		fi
		# Up to Go 1.26 the end of -fuzztime itself can be reported as a
		# failure (golang/go#75804). No input failed then: try once more.
		if ((try == 1)) && grep -q 'context deadline exceeded' "$log" && ! grep -qE 'Failing input|panic:' "$log"; then
			printf 'again %-60s the fuzzer tripped over its own deadline\n' "$package.$target"
			continue
		fi
		break
	done
	printf 'FAIL  %s\n' "$package.$target"
	cat "$log"
	rm -f "$log"
	return 1
}

# list MODULE: lines of "module package target".
list() {
	(cd "$1" && go test -list '^Fuzz' ./...) | awk -v module="$1" '
		/^Fuzz/ { targets[++n] = $1; next }
		$1 == "ok" { for (i = 1; i <= n; i++) print module, $2, targets[i]; n = 0 }'
}

if [[ ${1-} == --one ]]; then
	shift
	fuzz_one "$@"
	exit
fi

targets=$(for module in "$@"; do list "$module"; done)
if [[ -n ${FUZZONLY-} ]]; then
	targets=$(awk -v re="$FUZZONLY" '($2 "." $3) ~ re' <<<"$targets")
fi
if [[ -n ${FUZZSKIP-} ]]; then
	targets=$(awk -v re="$FUZZSKIP" '($2 "." $3) !~ re' <<<"$targets")
fi
if [[ -z $targets ]]; then
	echo "fuzz.sh: no fuzz target in: $*" >&2
	exit 1
fi
echo "fuzzing $(wc -l <<<"$targets") targets for $fuzztime each"
xargs -P "${FUZZJOBS:-$(nproc)}" -n 3 "$0" --one <<<"$targets"
