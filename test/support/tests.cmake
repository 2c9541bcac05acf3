# SPDX-License-Identifier: Apache-2.0
#
# Functions for the CMakeLists.txt of the test folders: a GoogleTest program with our helpers, and its registration once
# per line, served by preload or by what it was linked with.
include_guard(DIRECTORY)
include(${CMAKE_CURRENT_LIST_DIR}/googletest.cmake)
find_package(Threads REQUIRED)
include(${CMAKE_CURRENT_LIST_DIR}/weights.cmake)

set(HZ_TEST_SUPPORT ${CMAKE_CURRENT_LIST_DIR})

function(hz_test_options target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  # Without builtins: a compiler may not pair up or drop the very calls that are tested. clang 14 needs to be told that
  # sized delete exists.
  target_compile_options(${target} PRIVATE -Wall -Wextra -fno-builtin $<$<COMPILE_LANGUAGE:CXX>:-Wno-invalid-offsetof>
    $<$<COMPILE_LANGUAGE:CXX>:-fsized-deallocation>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/test)
  if(HZ_EMULATED)
    target_compile_definitions(${target} PRIVATE HZ_TEST_EMULATED)
  endif()
  if(WIN32)
    # Helpers that Windows has in another way, by the same names.
    target_include_directories(${target} BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/test/windows)
  endif()
endfunction()

# hz_compile_tests(TARGET [OPTIONS…]): the headers that most tests include take longer to compile than the tests; all
# programs with the same options share them, compiled once.
function(hz_compile_tests target)
  string(MAKE_C_IDENTIFIER "hz_test_headers${ARGN}" headers)
  if(NOT TARGET ${headers})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${headers}.cpp)
    file(GENERATE OUTPUT ${source} CONTENT "// Compiled for its precompiled headers.\n")
    add_library(${headers} OBJECT ${source})
    hz_test_options(${headers})
    target_compile_options(${headers} PRIVATE ${ARGN})
    target_link_libraries(${headers} PRIVATE GTest::gtest Threads::Threads)
    target_precompile_headers(${headers} PRIVATE ${HZ_TEST_SUPPORT}/precompiled.hpp)
  endif()
  hz_test_options(${target})
  target_compile_options(${target} PRIVATE ${ARGN})
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

function(hz_link_tests target)
  target_link_libraries(${target} PRIVATE ${ARGN} GTest::gtest Threads::Threads ${CMAKE_DL_LIBS})
  # dlsym must see what was linked in.
  if(WIN32)
    target_link_options(${target} PRIVATE -Wl,--export-all-symbols)
    target_link_libraries(${target} PRIVATE psapi)
    return()
  endif()
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  if(CMAKE_CROSSCOMPILING AND NOT HZ_GLIBC)
    target_sources(${target} PRIVATE ${HZ_TEST_SUPPORT}/musl_runtime.cpp)
  endif()
endfunction()

# hz_test_program(NAME SOURCES… [LIBRARIES …] [SHORT]): SHORT, what runs for moments. With sanitizers clang takes twice as
# long to optimise it.
function(hz_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SHORT" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  set(options)
  if(arg_SHORT AND HZ_DEBUG AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(options -O0)
  endif()
  hz_compile_tests(${name} ${options})
  hz_link_tests(${name} ${arg_LIBRARIES})
endfunction()

# hz_test_objects(NAME SOURCES… [DEFINITIONS …]): NAME_objects, what programs share that differ in what they link with.
function(hz_test_objects name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEFINITIONS")
  if(NOT TARGET ${name}_objects)
    add_library(${name}_objects OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
    hz_compile_tests(${name}_objects)
    target_compile_definitions(${name}_objects PRIVATE ${arg_DEFINITIONS})
    target_link_libraries(${name}_objects PRIVATE GTest::gtest)
  endif()
endfunction()

# hz_link_program(PROGRAM NAME LIBRARIES…): of the objects of NAME.
function(hz_link_program program name)
  add_executable(${program} $<TARGET_OBJECTS:${name}_objects>)
  set_target_properties(${program} PROPERTIES LINKER_LANGUAGE CXX)
  hz_link_tests(${program} ${ARGN})
endfunction()

# hz_line_program(NAME LINE KIND SOURCES… [DEFINITIONS …]): NAME_LINE, linked with the line's library of that KIND, direct
# or static. What is compiled knows the public headers alone, so all lines share it.
function(hz_line_program name line kind)
  hz_test_objects(${name} ${ARGN})
  hz_link_program(${name}_${line} ${name} hakozuna::${line}-${kind})
endfunction()

# hz_put_beside_dlls(TARGETS…): on Windows, where the loader looks for DLLs beside the program.
function(hz_put_beside_dlls)
  set_target_properties(${ARGN} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()

# hz_register(PROGRAM PREFIX LABEL [ALONE REGEX] [TIMEOUT SECONDS] [ENVIRONMENT …]): the tests of PROGRAM, listed when
# ctest starts. The cases of a suite share a process and are one test of ctest, PREFIX.Suite, because a process costs
# more than most cases. Suites that match ALONE have a process for each case, PREFIX.Suite.Case: those whose cases count
# on what a fresh process is like. HZ_TEST_ALONE=1 in ctest's environment gives every case its own.
function(hz_register program prefix label)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "ALONE;TIMEOUT" "ENVIRONMENT")
  set(timeout 600)
  if(arg_TIMEOUT)
    set(timeout ${arg_TIMEOUT})
  endif()
  if(DEFINED ENV{HZ_TEST_LONG})  # `hz endure` configures with it
    set(timeout 3600)
  endif()
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${prefix}.${program}.cmake")
  file(GENERATE OUTPUT "${file}" CONTENT
"set(hz_program [==[$<TARGET_FILE:${program}>]==])
set(hz_emulator [==[${CMAKE_CROSSCOMPILING_EMULATOR}]==])
set(hz_prefix [==[${prefix}]==])
set(hz_label ${label})
set(hz_timeout ${timeout})
set(hz_alone [==[${arg_ALONE}]==])
set(hz_environment [==[${arg_ENVIRONMENT}]==])
include([==[${HZ_TEST_SUPPORT}/register.cmake]==])
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}")
endfunction()

# hz_discover(NAME LINE KIND LABEL [VARIABLE VALUE] [ALONE REGEX]): its tests become LABEL.LINE.KIND.Suite
# VARIABLE is one more variable of their environment. Nothing where the program is left out.
function(hz_discover name line kind label)
  if(NOT TARGET ${name})
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 4 arg "" "ALONE" "")
  set(environment HZ_TEST_LINE=${line})
  if(line IN_LIST HZ_TEST_BRIEF_LINES)
    list(APPEND environment HZ_TEST_TIER=quick)
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    list(GET arg_UNPARSED_ARGUMENTS 0 variable)
    list(GET arg_UNPARSED_ARGUMENTS 1 value)
    list(APPEND environment "${variable}=${value}")
  endif()
  hz_register(${name} ${label}.${line}.${kind} ${label} ALONE "${arg_ALONE}" ENVIRONMENT ${environment})
endfunction()
