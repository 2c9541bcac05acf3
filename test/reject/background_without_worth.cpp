// SPDX-License-Identifier: Apache-2.0
//
// A purger's beat that does not say when it is worth it.
#include "box/retain/contract.hpp"

using namespace hz;

struct Box {
  static constexpr unsigned kTickMilliseconds = 1, kRetryMilliseconds = 1;
  static bool tidies(unsigned);
#ifdef HZ_COMPLETE
  static bool worth(std::size_t);
#endif
  static bool is_idle(unsigned);
  static bool is_still(unsigned);
  static bool outgrown(std::size_t, std::size_t);
  static bool at_rest(unsigned);
};

static_assert(BackgroundContract<Box>);
