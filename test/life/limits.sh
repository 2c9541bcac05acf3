# SPDX-License-Identifier: Apache-2.0
#
# python3 under limits of its address space, alone and with twenty threads; what it writes must be what it writes
# without a limit and without us.
. "$(dirname "$0")/../preload/lib.sh"
need python3
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
# One arena: with more of them the C library's threads spend ten seconds asking for what the limit does not allow.
export MALLOC_ARENA_MAX=1
export PYTHONMALLOC=malloc PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1

cat >"$work/alone.py" <<'PY'
import json, re
table = {str(n): [n] * (n % 50) for n in range(3000)}
text = json.dumps(table, sort_keys=True)
print(len(text), len(re.findall(r"\d+", text)), json.loads(text) == table)
big = bytearray(6 << 20)
big[-1] = 7
print(sum(big))
PY
cat >"$work/threads.py" <<'PY'
import threading
threading.stack_size(128 * 1024)
results = [0] * 20
def work(i):
    for _ in range(5):
        results[i] += sum(len(str(n) * 3) for n in range(i * 100 + 1000))
threads = [threading.Thread(target=work, args=(i,)) for i in range(20)]
for t in threads: t.start()
for t in threads: t.join()
print(results)
PY

# under KIB COMMAND…: with the limit, which the program sees from its start
under() (
  ulimit -v "$1"
  shift
  run "$@"
)
limits='64 256 1024 4096 16384'
if [ "${HZ_TEST_TIER:-}" = quick ]; then limits="64 1024"; fi
for script in alone threads; do
  for mib in $limits; do
    both "$script-$mib" under $((mib * 1024)) "$python" "$work/$script.py"
    same "$work/$script-64.plain.out" "$work/$script-$mib.served.out"
  done
done
