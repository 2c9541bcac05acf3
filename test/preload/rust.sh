# SPDX-License-Identifier: Apache-2.0
#
# rustc: compile a program that uses the system's allocator, and run it. The executables must be the same to the byte.
# A rustc that brings an allocator of its own is served only where it starts the linker.
. "$(dirname "$0")/lib.sh"
need rustc cc
rustc=$(program rustc)
version "$("$rustc" --version | cut -d' ' -f2)"
compile_and_run() {
  cd "$work"
  run "$rustc" --edition 2021 -O -C debuginfo=1 -o churn "$sources/churn.rs"
  cksum <churn
  run ./churn
}
both rust compile_and_run
