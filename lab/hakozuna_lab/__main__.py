# SPDX-License-Identifier: Apache-2.0
"""`python -m hakozuna_lab COMMAND …`, which is how `hz` starts the lab."""

from hakozuna_lab.cli import main

main()
