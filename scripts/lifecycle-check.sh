#!/usr/bin/env bash
# Run the whole lifecycle as the README says, then once more with a threshold
# that no model meets: the first must be promoted, the second must not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "lifecycle-check.sh: $*" >&2
	exit 1
}

# promoted STORE: the aliases that a store has, one a line.
promoted() {
	find "$1" -type f -path '*/aliases/*' | sort
}

make run RUN_DIR="$dir/passed/run"
for file in gate_report.json promote_report.json report.html model_card.md best/model.safetensors; do
	[[ -s $dir/passed/run/$file ]] || fail "the passed run has no $file"
done
[[ $(promoted "$dir/passed/store") == */production* ]] || fail "the passed run moved no alias"
bin/trainer lineage --run-dir "$dir/passed/run" --store "file://$dir/passed/store" >/dev/null ||
	fail "the lineage of the passed run does not verify"

code=0
make run RUN_DIR="$dir/blocked/run" CORPUS_BYTES=400000 \
	RUN_FLAGS="--max-iters 20 --vocab-size 1024 --max-val-loss 0.5 --progress none" >"$dir/log" 2>&1 || code=$?
cat "$dir/log"
# make's own exit code for a failed command is 2; it prints the command's.
if ((code != 2)) || ! grep -q 'Error 1$' "$dir/log"; then
	fail "the blocked run did not exit with 1"
fi
for file in gate_report.json report.html; do
	[[ -s $dir/blocked/run/$file ]] || fail "the blocked run has no $file"
done
grep -q '0\.5' "$dir/blocked/run/gate_report.json" || fail "the gate's report does not name the threshold"
[[ -z $(promoted "$dir/blocked/store") ]] || fail "the blocked run moved an alias"
echo "lifecycle: one promoted, one blocked"
