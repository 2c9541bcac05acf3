# SPDX-License-Identifier: Apache-2.0
"""`hz endure --hours N`: services under load for hours, trouble thrown at them, and whether their memory drifts. They
are started as the lab's programs are (hakozuna_lab.programs); doc/lab.md says how to read the page that is written."""
