# SPDX-License-Identifier: Apache-2.0
#
# node: buffers, worker threads, compression, digests, many files at once and a child process.
. "$(dirname "$0")/lib.sh"
need node
version "$(node --version)"
unset NODE_OPTIONS
export TMPDIR="$work"
both node run node "$sources/churn.js"
