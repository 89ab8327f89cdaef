#!/bin/sh
# Builds versitygw, a real S3 server over a directory, and prints the binary's
# path. It is a test tool, kept outside the checkout and keyed by its version,
# so that a second call builds nothing.
#
#   scripts/versitygw.sh        build it if needed, print its path
#   scripts/versitygw.sh test   and run the trainer's tests that need it
#
# TRAINYARD_CACHE names another folder for what is built.
set -eu

version=v1.8.0
cache=${TRAINYARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/trainyard}
dir=$cache/versitygw-$version-$(go env GOVERSION)
bin=$dir/versitygw

if [ ! -x "$bin" ]; then
	mkdir -p "$dir"
	tmp=$(mktemp -d "$dir/build.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	# From an empty folder, so that no go.mod or go.work nearby changes the build.
	(cd "$tmp" && GOWORK=off GOBIN="$tmp" CGO_ENABLED=0 nice -n 10 \
		go install -trimpath -ldflags='-s -w' \
		"github.com/versity/versitygw/cmd/versitygw@$version") >&2
	mv -f "$tmp/versitygw" "$bin"
fi

case ${1-} in
"") echo "$bin" ;;
test)
	cd "$(dirname "$0")/../trainer"
	TRAINYARD_VERSITYGW=$bin go test -count=1 -tags versitygw -run Versitygw \
		./internal/store ./internal/registry
	;;
*)
	echo "versitygw.sh: $1 is unknown: say nothing or test" >&2
	exit 2
	;;
esac
