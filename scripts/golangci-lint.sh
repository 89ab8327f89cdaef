#!/usr/bin/env bash
# Build one version of golangci-lint with the installed Go, and print the
# binary's path. It is kept outside the checkout, keyed by both versions, so
# that a second call builds nothing.
#
# usage: golangci-lint.sh VERSION
#
# TRAINYARD_CACHE names another folder for what is built.
#
# It is no dependency of a module here: its several hundred modules would be in
# our go.sum. Go's checksum database guards the download.
set -euo pipefail

version=$1
cache=${TRAINYARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/trainyard}
dir=$cache/golangci-lint-$version-$(go env GOVERSION)
bin=$dir/golangci-lint
if [[ ! -x $bin ]]; then
	echo "building golangci-lint $version (a minute or two, once)" >&2
	mkdir -p "$dir"
	tmp=$(mktemp -d "$dir/build.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	(cd "$tmp" && GOWORK=off GOBIN=$tmp GOFLAGS=-buildvcs=false CGO_ENABLED=0 \
		go install -trimpath -ldflags='-s -w' "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version") >&2
	mv -f "$tmp/golangci-lint" "$bin"
fi
echo "$bin"
