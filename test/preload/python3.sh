# SPDX-License-Identifier: Apache-2.0
#
# python3 with its own small-object allocator switched off, so that every object is a block of ours.
. "$(dirname "$0")/lib.sh"
need python3
python=$(program python3)
version "$("$python" --version | cut -d' ' -f2)"
export PYTHONMALLOC=malloc PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
both python3 run "$python" "$sources/churn.py"
