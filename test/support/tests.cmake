# SPDX-License-Identifier: Apache-2.0
#
# Functions for the CMakeLists.txt of the test folders: a GoogleTest program with our helpers, and its registration once
# per line, served by preload or by what it was linked with.
include_guard(DIRECTORY)
include(GoogleTest)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)

# hz_test_program(NAME SOURCES… [LIBRARIES …])
function(hz_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  target_compile_features(${name} PRIVATE cxx_std_20)
  # Without builtins: a compiler may not pair up or drop the very calls that are tested. clang 14 needs to be told that
  # sized delete exists.
  target_compile_options(${name} PRIVATE -Wall -Wextra -fno-builtin -fsized-deallocation)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/test)
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} GTest::gtest Threads::Threads ${CMAKE_DL_LIBS})
  # dlsym must see what was linked in.
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

# hz_discover(NAME LINE KIND LABEL [VARIABLE VALUE]): its tests become LABEL.LINE.KIND.Suite.Test
# VARIABLE is one more variable of their environment; it has a property of its own, because lists inside PROPERTIES do
# not arrive as lists.
function(hz_discover name line kind label)
  set(modification)
  if(ARGC GREATER 4)
    set(modification ENVIRONMENT_MODIFICATION ${ARGV4}=set:${ARGV5})
  endif()
  set(timeout 300)
  if(DEFINED ENV{HZ_TEST_LONG})  # `hz endure` configures with it
    set(timeout 3600)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${label}.${line}.${kind}. DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${label} TIMEOUT ${timeout} ENVIRONMENT HZ_TEST_LINE=${line} ${modification})
endfunction()
