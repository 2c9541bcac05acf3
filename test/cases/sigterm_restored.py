# SPDX-License-Identifier: Apache-2.0
# A program that saves SIGTERM's action, sets its own and restores what it saved, finds the default action. Where that
# ends it, the statistics line comes first.
# run: HZ_STATS=1
# run: HZ_PROFILE_HEAP=1 HZ_PROFILE_HEAP_FILE=/dev/null
# run: HZ_STATS=1 HZ_POLICY=observe HZ_PROFILE=/dev/null
# run:
# prints: ok
# alone
import ctypes
import os
import signal
import subprocess
import sys

CHILD = "import os, signal; signal.signal(15, signal.signal(15, lambda *_: None)); os.kill(os.getpid(), 15)"

saved = signal.signal(signal.SIGTERM, lambda *_: None)
if saved != signal.SIG_DFL:
    sys.exit(f"found {saved}")
signal.signal(signal.SIGTERM, saved)
if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
    sys.exit("not restored")
libc = ctypes.CDLL(None)
libc.signal.restype = ctypes.c_void_p
for found in (libc.signal(15, None), libc.signal(15, 1), libc.signal(15, None)):
    if found not in (None, 1):
        sys.exit(f"signal found {found}")
child = subprocess.run([sys.executable, "-c", CHILD], stderr=subprocess.PIPE, text=True, check=False)
if child.returncode != -signal.SIGTERM:
    sys.exit(f"the child ends with {child.returncode}")
if ("hz: stats" in child.stderr) != ("HZ_STATS" in os.environ):
    sys.exit(f"the child writes {child.stderr}")
print("ok")
