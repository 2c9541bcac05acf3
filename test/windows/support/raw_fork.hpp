// SPDX-License-Identifier: Apache-2.0
//
// Windows has no forks, and no children that are made beside them.
#pragma once
