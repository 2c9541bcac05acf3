# SPDX-License-Identifier: Apache-2.0
#
# Read by ctest when it starts, once for each call of hz_register (tests.cmake, where the hz_… variables are described):
# asks the program which tests it has and adds them. Nothing is stored, so a list is never older than its program.
cmake_policy(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/weights.cmake")

if(NOT EXISTS "${hz_program}")
  # Said as ctest says it of other programs that were not built.
  add_test("${hz_prefix}_NOT_BUILT" "${hz_program}")
  set_tests_properties("${hz_prefix}_NOT_BUILT" PROPERTIES LABELS ${hz_label})
  return()
endif()

# Several lines may share the program.
if(NOT DEFINED "hz_list_of_${hz_program}")
  execute_process(COMMAND ${hz_emulator} "${hz_program}" --gtest_list_tests OUTPUT_VARIABLE output RESULT_VARIABLE result TIMEOUT 60)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${hz_program} --gtest_list_tests: ${result}\n${output}")
  endif()
  string(REPLACE "\r" "" output "${output}")
  string(REPLACE "[" "(" output "${output}")
  string(REPLACE "]" ")" output "${output}")
  string(REPLACE ";" "," output "${output}")
  string(REPLACE "\n" ";" output "${output}")
  set("hz_list_of_${hz_program}" "${output}")
endif()

# What runs under a name: what all tests have, and its weight.
function(hz_add name filter)
  add_test("${name}" ${hz_emulator} "${hz_program}" "--gtest_filter=${filter}" --gtest_color=no)
  # A filter that chooses nothing would be a success.
  set_tests_properties("${name}" PROPERTIES TIMEOUT ${hz_timeout} ENVIRONMENT "${hz_environment}"
    FAIL_REGULAR_EXPRESSION "Running 0 tests" ${ARGN})
  hz_weigh(${hz_label} "${name}")
endfunction()

set(suite)
foreach(entry IN LISTS "hz_list_of_${hz_program}")
  if(entry MATCHES "^([A-Za-z_][A-Za-z_0-9/]*)\\.( *# TypeParam = (.*))?$")
    set(suite "${CMAKE_MATCH_1}")
    set(of "${CMAKE_MATCH_3}")
    string(REGEX REPLACE "/[0-9]+$" "" title "${suite}")
    set(alone FALSE)
    if(DEFINED ENV{HZ_TEST_ALONE} OR (NOT hz_alone STREQUAL "" AND title MATCHES "${hz_alone}"))
      set(alone TRUE)
    endif()
    if(of STREQUAL "")
      set(title "${suite}")
    else()
      set(of "<${of}>")
    endif()
    if(NOT alone AND NOT suite MATCHES "DISABLED_")
      hz_add("${hz_prefix}.${title}${of}" "${suite}.*")
    endif()
  elseif(alone AND NOT "${suite}${entry}" MATCHES "DISABLED_" AND entry MATCHES "^  ([A-Za-z_0-9/]+)")
    hz_add("${hz_prefix}.${title}.${CMAKE_MATCH_1}${of}" "${suite}.${CMAKE_MATCH_1}"
           SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
  endif()
endforeach()
