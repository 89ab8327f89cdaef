#!/usr/bin/env bash
# Install Debian packages whose command is missing; do nothing otherwise.
#
# usage: install-debian.sh COMMAND[:PACKAGE[,PACKAGE...]] ...
#
# A command without packages is in the package of the same name.
set -euo pipefail

packages=()
for want in "$@"; do
	command=${want%%:*}
	if ! command -v "$command" >/dev/null; then
		IFS=, read -ra more <<<"${want#*:}"
		packages+=("${more[@]}")
	fi
done
if ((${#packages[@]} == 0)); then
	exit 0
fi

if ! command -v apt-get >/dev/null; then
	echo "install-debian.sh: missing ${packages[*]}, and there is no apt-get: install them by hand" >&2
	exit 1
fi
sudo=()
if ((EUID != 0)); then
	sudo=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
echo "installing ${packages[*]}" >&2
# Another apt-get may hold the lock: wait for it.
apt=("${sudo[@]}" apt-get -qq -o DPkg::Lock::Timeout=300)
"${apt[@]}" update >&2
"${apt[@]}" install -y --no-install-recommends "${packages[@]}" >&2
