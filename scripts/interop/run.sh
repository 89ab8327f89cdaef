#!/usr/bin/env bash
# Exchange models with Hugging Face's transformers and write docs/interop.md.
#
# usage: run.sh          run everything; installs what is missing
#        run.sh golden   write the golden files of trainer/internal/{gpt,safetensors,hf}/testdata
#
# INTEROP_VENV     where the Python packages go (default: runs/interop/venv)
# INTEROP_PYTHON   a Python that has torch and transformers; nothing is installed
#
# Debian's PyTorch is used: PyPI's does not start without CUDA's libraries.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
scripts=$root/scripts/interop
work=$root/runs/interop
venv=${INTEROP_VENV:-$work/venv}
packages=(transformers==4.40.2 tokenizers==0.19.1 safetensors==0.8.0)

install() {
	/usr/bin/python3 -c 'import torch, venv, ensurepip' 2>/dev/null ||
		"$root/scripts/install-debian.sh" no-such-command:python3-torch,python3-venv
	if ! cmp -s <(echo "${packages[@]}") "$venv/packages"; then
		rm -rf "$venv"
		/usr/bin/python3 -m venv --system-site-packages "$venv"
		"$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
		echo "${packages[@]}" >"$venv/packages"
	fi
}
[[ -n ${INTEROP_PYTHON:-} ]] || install
# Nothing may be looked for on a hub.
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=1 TRANSFORMERS_VERBOSITY=error HF_HUB_DISABLE_PROGRESS_BARS=1
python() { "${INTEROP_PYTHON:-$venv/bin/python}" -W ignore "$@"; }

if [[ ${1:-} == golden ]]; then
	for script in gpt2_goldens safetensors_golden transformers_golden; do
		python "$scripts/$script.py"
	done
	exit
fi

exchange=$work/exchange
rm -rf "$exchange"
mkdir -p "$exchange"
trainer() {
	(cd "$root/trainer" && INTEROP_DIR=$exchange go test -count=1 -tags interop -run "^$1\$" ./internal/hf/interoptest)
}
status=0
trainer TestWriteModels
python "$scripts/check_ours.py" "$exchange" || status=1
python "$scripts/make_theirs.py" "$exchange"
trainer TestReadModels || status=1
python "$scripts/report.py" "$exchange" "$root/docs/interop.md" || status=1
exit $status
