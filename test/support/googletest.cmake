# SPDX-License-Identifier: Apache-2.0
#
# GTest::gtest and GTest::gtest_main: of the distribution; for another processor from the sources that Debian's
# libgtest-dev brings along.
include_guard(GLOBAL)
if(CMAKE_CROSSCOMPILING)
  add_subdirectory(/usr/src/googletest/googletest "${CMAKE_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
else()
  find_package(GTest REQUIRED)
endif()
