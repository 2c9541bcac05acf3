# SPDX-License-Identifier: Apache-2.0
"""`python -m hakozuna ARGS...` is `python ARGS...`, served by the default line."""

import sys

from hakozuna import launch

launch("run", "--", sys.executable, *sys.argv[1:])
