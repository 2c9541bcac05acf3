# SPDX-License-Identifier: Apache-2.0
#
# What ctest is told of a test beside how it is run, by its name: how long it takes, so that the longest begin first and
# all cores are busy to the end; and whether it mostly sleeps. Read by CMake (tests that are scripts) and by ctest
# (GoogleTest programs). A test that is not named here is short.
include_guard(DIRECTORY)

# Seconds of one processor, roughly; the first that matches counts.
set(HZ_TEST_COSTS
  "^(lab\\.pytest|preload\\..*\\.cpython)" 60
  "^launcher\\.(first_use|programs|run)" 30
  "^package\\.macos$" 60
  "^(fuzz\\.search|pairs\\.)" 30
  "^package\\.(conan|crate|deb|wheel)$" 15
  "^preload\\." 15
  "^life\\..*\\.limits$" 15
  "^package\\.reproducible$" 10
  "^darwin\\.build$" 10
  "PurgerAndFork" 15
  "^bench\\.lane" 12
  "^observe\\." 10
  "^jemalloc\\.redis$" 8
  "^returns\\." 10
  "EveryThreadLeavesAfterAPause|HeldOwner|NoneLeft|AtEveryInstruction" 8
  "^fault\\..*(Shrinking|FailingCalls)" 8
  "^(hostile|stress|lab|package\\.consumer|launcher)\\." 5
  "^(contract\\..*(LineContract|SourceLimit)|model|death|reject)" 4)

set(HZ_TESTS_THAT_SLEEP "^returns\\.|EveryThreadLeavesAfterAPause")

# hz_weigh(LABEL TESTS…)
# `hz test` tells ctest six times as many processors as there are: a test takes four of them, one that sleeps three. So two
# cores have three tests at once, or four that sleep: with two a quarter of the time was nobody's.
function(hz_weigh label)
  foreach(name IN LISTS ARGN)
    set(cost 0)
    set(rules ${HZ_TEST_COSTS})
    while(rules)
      list(POP_FRONT rules pattern seconds)
      if(name MATCHES "${pattern}")
        set(cost ${seconds})
        break()
      endif()
    endwhile()
    set(processors 4)
    if(name MATCHES "${HZ_TESTS_THAT_SLEEP}")
      set(processors 3)
    endif()
    set_tests_properties("${name}" PROPERTIES LABELS ${label} COST ${cost} PROCESSORS ${processors})
  endforeach()
endfunction()
