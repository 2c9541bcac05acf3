# SPDX-License-Identifier: Apache-2.0
"""Work for python3 whose output is the same every time; run by python3.sh."""
import hashlib
import json
import random
import subprocess
import sys
import threading
import zlib


def digest(data):
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def churn(seed):
    """Dictionaries, strings and lists of all sizes that come and go."""
    rng = random.Random(seed)
    live = {}
    for step in range(12000):
        key = rng.randrange(800)
        kind = rng.randrange(4)
        if kind == 0:
            live[key] = "x" * rng.randrange(3000)
        elif kind == 1:
            live[key] = list(range(rng.randrange(400)))
        elif kind == 2:
            live[key] = {str(i): i * step for i in range(rng.randrange(60))}
        else:
            live.pop(key, None)
    return digest({str(k): v for k, v in live.items()})


def threads():
    results = [None] * 6

    def work(index):
        results[index] = churn(index)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


def handed_over():
    """Objects made by one thread, dropped by another."""
    made, total = [], 0

    def produce():
        made.extend({"i": i, "text": "y" * (i % 700)} for i in range(30000))

    producer = threading.Thread(target=produce)
    producer.start()
    producer.join()
    while made:
        total += len(made.pop()["text"])
    return total


def documents():
    document = [{"id": i, "tags": [str(j) for j in range(i % 20)], "body": "z" * (i % 333)} for i in range(5000)]
    for _ in range(3):
        document = json.loads(json.dumps(document))
    return digest(document)


def large():
    buffer = bytearray()
    for i in range(400):
        buffer += bytes([i % 256]) * 50000
    return zlib.crc32(zlib.decompress(zlib.compress(bytes(buffer), 1)))


def child():
    code = "print(sum(len(str(i) * 50) for i in range(20000)))"
    return [subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode()
            for _ in range(3)]


for part in (threads, handed_over, documents, large, child):
    print(part.__name__, part())
