# SPDX-License-Identifier: Apache-2.0
#
# lua, whose every object is a block of its own: strings, tables, closures, coroutines, and buffers that grow.
. "$(dirname "$0")/lib.sh"
need lua
version "$(lua -v 2>&1 | cut -d' ' -f2)"
both lua run lua "$sources/churn.lua"
