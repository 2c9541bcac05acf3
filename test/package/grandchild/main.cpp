// SPDX-License-Identifier: Apache-2.0
//
// Works when the parent's library works; our header is found, too.
#include <hakozuna/hakozuna.h>

bool wrapper_works();

int main() { return wrapper_works() && hz_line()[0] != '\0' ? 0 : 1; }
