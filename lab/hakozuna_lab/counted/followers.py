# SPDX-License-Identifier: Apache-2.0
"""Which words follow which, and how often: the length of the list. Then a document of JSON, read and written."""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

words, document = map(Path, sys.argv[1:])
count: Counter[str] = Counter()
after = defaultdict(list)
last = ""
with words.open(encoding="utf-8") as lines:
    for line in lines:
        for word in line.split():
            count[word] += 1
            after[last].append(word)
            last = word
listed = [
    ",".join(f"{follower}={times}" for follower, times in sorted(Counter(after[word]).items())) + "\n"
    for word in sorted(count, key=lambda word: (-count[word], word))
]
print(len("".join(listed)))
print(len(json.dumps(json.loads(document.read_text(encoding="utf-8")))))
