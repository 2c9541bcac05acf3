# SPDX-License-Identifier: Apache-2.0
# Another product's HZ_ variables are passed over; a mistyped one of ours is named once in a tree of processes, and no
# value is printed.
# alone
import os
import subprocess
import sys

VARIABLES = {
    "HZ_CLUSTERNAME": "prod",  # as Hazelcast is configured
    "HZ_LICENSEKEY": "SECRET#123",
    "HZ_NETWORK_PORT_AUTOINCREMENT": "true",
    "HZ_LIMIT_HRAD": "SECRET#456",
}
EXPECTED = ["hz: warning: HZ_LIMIT_HRAD not understood; did you mean HZ_LIMIT_HARD?"]


def said(variables: dict[str, str]) -> list[str]:
    command = ["sh", "-c", "/bin/true; sh -c '/bin/true; /bin/true; :'; :"]
    done = subprocess.run(command, env=os.environ | variables, stderr=subprocess.PIPE, text=True, check=True)
    return done.stderr.splitlines()


if said(VARIABLES) != EXPECTED:
    print("said:", said(VARIABLES))
    sys.exit(1)
