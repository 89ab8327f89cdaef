#!/usr/bin/env bash
# Build one version of golangci-lint from source with the installed Go.
#
# usage: install-golangci-lint.sh VERSION OUTPUT
#
# It is no dependency of a module here: its several hundred modules would be in
# our go.sum. Go's checksum database guards the download.
set -euo pipefail

version=$1
output=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
echo "building golangci-lint $version (a minute or two, once)" >&2
GOBIN=$tmp GOFLAGS=-buildvcs=false go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
mkdir -p "$(dirname "$output")"
mv "$tmp/golangci-lint" "$output"
