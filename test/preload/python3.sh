# SPDX-License-Identifier: Apache-2.0
#
# python3 with its own small-object allocator switched off, so that every object is a block of ours.
. "$(dirname "$0")/lib.sh"
need python3
# The interpreter itself, where `python3` is a script that looks for one.
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
export PYTHONMALLOC=malloc PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
both python3 "$python" "$sources/churn.py"
