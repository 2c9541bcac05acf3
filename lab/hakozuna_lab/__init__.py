# SPDX-License-Identifier: Apache-2.0
"""The lab: measures allocators beside each other and says what came out. `hz bench`, `ab`, `report`, `peers` and
`run --measure` are its commands; doc/lab.md tells how to use it and how to read its tables."""


class LabError(Exception):
    """What the user is told in one line before a command ends with status 125."""


class UsageError(LabError):
    """A wrong option, name or value; the command ends with status 2."""


class RunError(LabError):
    """A program crashed, hung or ran out of memory under a contender. The others' runs go on; the table says it."""
