# SPDX-License-Identifier: Apache-2.0
"""`hz endure --hours N`: services under load for hours, trouble thrown at them, and whether their memory drifts. It runs
what the lab's programs start (hakozuna_lab.programs); doc/lab.md says how to read the page that it writes."""
