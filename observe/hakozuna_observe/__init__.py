# SPDX-License-Identifier: Apache-2.0
"""Looks into running processes that Hakozuna serves, from outside: `hz stat` and `hz top` are its users.

Nothing in the process is changed or stopped: its memory is read while it runs, where the library says that its counters
lie (src/base/layout.hpp). The standard library of Python 3.9 is enough for all but the full-screen view.
"""
