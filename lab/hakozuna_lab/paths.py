# SPDX-License-Identifier: Apache-2.0
"""Where things are in the tree. `hz` tells the build directory by HZ_BUILD_DIR when it is not build/release."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HZ_BUILD_DIR") or ROOT / "build/release").resolve()
LANE = BUILD / "bench/lane"
RESULTS = ROOT / "bench/results"
