# SPDX-License-Identifier: Apache-2.0
#
# Functions for the CMakeLists.txt of the test folders: a GoogleTest program with our helpers, and its registration once
# per line, served by preload or by what it was linked with.
include_guard(DIRECTORY)
include(GoogleTest)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)

function(hz_compile_tests target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  # Without builtins: a compiler may not pair up or drop the very calls that are tested. clang 14 needs to be told that
  # sized delete exists.
  target_compile_options(${target} PRIVATE -Wall -Wextra -fno-builtin -fsized-deallocation)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/test)
  # GoogleTest's header takes longer to compile than most tests; of few sources it is not worth a compilation of its own.
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  if(count GREATER 4)
    target_precompile_headers(${target} PRIVATE <gtest/gtest.h>)
  endif()
endfunction()

function(hz_link_tests target)
  target_link_libraries(${target} PRIVATE ${ARGN} GTest::gtest Threads::Threads ${CMAKE_DL_LIBS})
  # dlsym must see what was linked in.
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

# hz_test_program(NAME SOURCES… [LIBRARIES …])
function(hz_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  hz_compile_tests(${name})
  hz_link_tests(${name} ${arg_LIBRARIES})
endfunction()

# hz_line_program(NAME LINE KIND SOURCES… [DEFINITIONS …]): NAME_LINE, linked with the line's library of that KIND, direct
# or static. What is compiled knows the public headers alone, so all lines share it.
function(hz_line_program name line kind)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "SOURCES;DEFINITIONS")
  if(NOT TARGET ${name}_objects)
    add_library(${name}_objects OBJECT ${arg_SOURCES})
    hz_compile_tests(${name}_objects)
    target_compile_definitions(${name}_objects PRIVATE ${arg_DEFINITIONS})
    target_link_libraries(${name}_objects PRIVATE GTest::gtest)
  endif()
  add_executable(${name}_${line} $<TARGET_OBJECTS:${name}_objects>)
  set_target_properties(${name}_${line} PROPERTIES LINKER_LANGUAGE CXX)
  hz_link_tests(${name}_${line} ${line}-${kind})
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
