# SPDX-License-Identifier: Apache-2.0
#
# What a debugger sees at the probes (doc/observe.md), for every line. Included by CMakeLists.txt where there are
# drop-in libraries and programs run here by themselves: an emulator cannot be traced.
add_executable(life_probed probed.c)
hz_test_options(life_probed)
target_link_libraries(life_probed PRIVATE ${CMAKE_DL_LIBS})
foreach(line IN LISTS HZ_LINE_NAMES)
  add_test(NAME life.${line}.preload.probes
           COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/probes_test.py
             $<TARGET_FILE:life_probed> $<TARGET_FILE:hakozuna::${line}>)
  set_tests_properties(life.${line}.preload.probes PROPERTIES TIMEOUT 180 SKIP_RETURN_CODE 77
    ENVIRONMENT "HZ_TEST_LINE=${line};PYTHONDONTWRITEBYTECODE=1")
  hz_weigh(life life.${line}.preload.probes)
endforeach()
