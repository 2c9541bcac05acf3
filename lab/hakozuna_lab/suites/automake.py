# SPDX-License-Identifier: Apache-2.0
"""Reads what suites say in automake's and DejaGnu's words, a line a test: each.py among them."""

import re
from collections.abc import Mapping

from hakozuna_lab.suites.suite import FAILED, PASSED, SKIPPED, Case

WORDS = {
    "PASS": PASSED, "XFAIL": PASSED, "FAIL": FAILED, "XPASS": FAILED, "ERROR": FAILED, "UNRESOLVED": FAILED,
    "SKIP": SKIPPED, "UNSUPPORTED": SKIPPED, "UNTESTED": SKIPPED,
}  # fmt: skip
LINE = re.compile(rf"^({'|'.join(WORDS)}): (\S.*)$", re.MULTILINE)


def read(text: str) -> Mapping[str, Case]:
    return {name.strip(): Case(WORDS[word], name.strip()) for word, name in LINE.findall(text)}
