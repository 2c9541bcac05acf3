# SPDX-License-Identifier: Apache-2.0
#
# What ctest is told of a test beside how it is run, by its name: how long it takes, so that the longest begin first and
# all cores are busy to the end; whether it mostly sleeps; and whether it is left to `hz test --all`. Read by CMake
# (tests that are scripts) and by ctest (GoogleTest programs). A test that is not named here is short.
include_guard(DIRECTORY)

# Seconds of one processor, roughly; the first that matches counts.
set(HZ_TEST_COSTS
  "^(lab\\.pytest|preload\\..*\\.cpython)" 60
  "^launcher\\.(first_use|programs|run)" 30
  "^package\\.macos$" 60
  "^fuzz\\.search" 30
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

# Left to `hz test --all`: what needs more than a compiler and GoogleTest, or takes long for what it finds.
set(HZ_TESTS_LEFT
  "^lab\\."
  "^observe\\."
  "^launcher\\.(first_use|programs|run)"
  "^gdb\\.trouble" "^gdb\\.hz[0-9]"  # hakozuna stays
  "^preload\\."  # but for those below
  "^darwin\\."
  "^jemalloc\\.jemalloc\\."
  "^jemalloc\\.redis"
  "^jemalloc\\.hakozuna\\.linked\\.[AT]"  # Actions, Arenas, Threads
  "^jemalloc\\.hakozuna\\.linked\\.Figures"
  "^package\\.(abi|consumer|parent|reproducible|sbom)"
  "^package\\.(conan|crate|deb|macos|recipes|wheel)$"
  "^reject\\."
  "^model\\.mutants$"
  # What preload shows as well; sanitizers and debug builds run it, too.
  "^fault\\.[^.]+\\.direct\\.Shrinking"
  "^surface\\.[^.]+\\.static\\.[A-Za-z]+$"  # but for the names: what was linked is what preload showed
  "^death\\.[^.]+\\.direct\\.(Handler|Short)"
  "^stress\\.[^.]+\\.direct\\.(ShortThreads|Fork|Container|ControlGroup)"
  "^stress\\.[^.]+\\.old_kernel\\."
  "ProducerConsumer\\.MemoryStaysBounded$"
  # Of a range one or two stay.
  "InBinOf\\.[A-Za-z]+/(0|2|5|24)$"
  "Exhaustion\\.By(Small|Large|Huge)"
  "pages_of_(4096|16384)"
  "Unwinding\\.AtEveryInstruction$"
  "RawFork\\.BesideThePurger$"
  "^life\\.hz7\\..*EveryThreadLeavesAfterAPause$")
# What a line has of its own shows in the contracts, in model, in stress by preload, and in whether memory comes back. What
# it shares with others is shown by hakozuna, whose heap most lines have, by hz7, which has another one, and by hz8 or hz3
# where boxes matter. Of hz3-fast and hz5 one box is their own.
foreach(name
    returns\\.hz3-fast returns\\.hz5 fault\\.hz3-fast fault\\.hz5 death\\.hz3-fast\\.direct death\\.hz5\\.direct)
  list(APPEND HZ_TESTS_LEFT "^${name}\\.")
endforeach()
foreach(line hz3-fast hz4 hz5 hz6)
  list(APPEND HZ_TESTS_LEFT "^stress\\.${line}\\.direct" "^stack\\.${line}\\.")
endforeach()
foreach(line hz3 hz3-fast hz4 hz5 hz6 hz8)
  list(APPEND HZ_TESTS_LEFT "^life\\.${line}\\." "^surface\\.${line}\\.")
endforeach()
foreach(line hz3 hz3-fast hz4 hz5 hz6 hz7)
  list(APPEND HZ_TESTS_LEFT "^returns\\.${line}\\.preload\\.Purger" "^returns\\.${line}\\.preload\\.Restricted")
endforeach()
set(HZ_TESTS_KEPT "^preload\\..*\\.(lua|python3|sqlite3|shellcheck)$")
list(JOIN HZ_TESTS_LEFT "|" HZ_TESTS_LEFT)

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
    set(labels ${label})
    if(name MATCHES "${HZ_TESTS_LEFT}" AND NOT name MATCHES "${HZ_TESTS_KEPT}")
      list(APPEND labels full)
    endif()
    set_tests_properties("${name}" PROPERTIES LABELS "${labels}" COST ${cost} PROCESSORS ${processors})
  endforeach()
endfunction()
