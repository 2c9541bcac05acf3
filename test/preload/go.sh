# SPDX-License-Identifier: Apache-2.0
#
# go: a program that calls C is built and run. The go command and its compiler may be static programs, which no preload
# reaches; the C compiler that they call, and the program, are not.
. "$(dirname "$0")/lib.sh"
need go gcc
go=$(program go)
version "$("$go" env GOVERSION | sed 's/^go//')"
export GOCACHE="${HZ_TEST_CACHE:-$work}/go" GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=1 HOME="$work"
unset GOROOT GOPATH GOBIN

prepare() { # FOLDER
  mkdir "$1"
  cp "$sources/churn.go" "$1/"
  printf 'module example.org/churn\n\ngo 1.19\n' >"$1/go.mod"
  cd "$1"
}

# Each turn in a folder of its own, because go would take the second one from its cache.
build_and_run() {
  prepare "$work/$turn"
  run "$go" run . >go_run 2>go_err
  cat go_run
  run "$go" build -o churn . 2>>go_err
  # go names the package before what its programs say, which is our proof.
  grep -v '^# example.org/churn$' go_err >&2 || true
  run ./churn >went
  same go_run went
}

# The standard library, where it does not come built, is no part of either turn.
(prepare "$work/first" && "$go" build -o churn .)
both go build_and_run
