# SPDX-License-Identifier: Apache-2.0
#
# Runs inside of gdb for probes_test.py: stops at every probe of the provider hakozuna, notes its two numbers, and goes
# on. The last line that it writes is what it saw, as JSON: a list of [probe, first, second].
import json

import gdb

NAMES = ("refill", "flush", "span_acquired", "span_retired", "purge", "fault", "limit")
hits = []


class Probe(gdb.Breakpoint):
    def __init__(self, name):
        super().__init__(f"-probe-stap hakozuna:{name}")
        self.name = name

    def stop(self):
        hits.append([self.name, *(int(gdb.parse_and_eval(f"$_probe_arg{i}")) for i in range(2))])
        return False


for name in NAMES:
    Probe(name)
gdb.execute("run")
print("\n" + json.dumps(hits))
