// SPDX-License-Identifier: Apache-2.0
// See empty_hash_table.c, which loads a copy of this library.
extern int plugin_is_loaded;
int plugin_is_loaded = 1;
