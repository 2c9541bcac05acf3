# SPDX-License-Identifier: Apache-2.0
"""The real programs that allocators are measured with, by name. `hz bench` runs their cases as cells "redis/set"."""

from hakozuna_lab.programs.compiler import CLANGXX, GXX
from hakozuna_lab.programs.memcached import MEMCACHED
from hakozuna_lab.programs.nginx import NGINX
from hakozuna_lab.programs.postgres import POSTGRES
from hakozuna_lab.programs.program import Program
from hakozuna_lab.programs.python import PYTHON
from hakozuna_lab.programs.redis import MEMTIER, REDIS
from hakozuna_lab.programs.sqlite import SQLITE

PROGRAMS: dict[str, Program] = {
    program.name: program for program in (REDIS, MEMTIER, PYTHON, GXX, CLANGXX, SQLITE, MEMCACHED, NGINX, POSTGRES)
}
