# SPDX-License-Identifier: Apache-2.0
"""Other people's test suites, by name: `hz suites` runs them with and without us. A new one is a module here and an
entry in SUITES. They use nothing but Python's own library, for `hz` starts them with the system's python."""

from hakozuna_lab.suites.allocators import JEMALLOC, MIMALLOC
from hakozuna_lab.suites.cpython import CPYTHON
from hakozuna_lab.suites.glibc import GLIBC
from hakozuna_lab.suites.go import GO
from hakozuna_lab.suites.libstdcxx import LIBSTDCXX
from hakozuna_lab.suites.postgres import POSTGRES
from hakozuna_lab.suites.redis import REDIS
from hakozuna_lab.suites.rust import RUST
from hakozuna_lab.suites.sqlite import SQLITE
from hakozuna_lab.suites.suite import Suite

SUITES: dict[str, Suite] = {
    suite.name: suite for suite in (CPYTHON, REDIS, SQLITE, POSTGRES, GLIBC, LIBSTDCXX, JEMALLOC, MIMALLOC, GO, RUST)
}
