// SPDX-License-Identifier: Apache-2.0
// Version 1 of a library, which the program has loaded first.
int library_version(void);
int library_version(void) { return 1; }
