# SPDX-License-Identifier: Apache-2.0
#
# A toolchain file: Linux with musl, compiled on Debian by its own g++ and run as it is by musl's loader. On a system whose C
# library is musl nothing of this is needed: its compiler builds the other presets. `hz for-checks musl` brings what this
# asks for, and makes the tree:
#   include/   the kernel's headers alone, by links: beside them lie those of glibc
#   lib/       a C++ runtime that was built for musl (tests are C++; our libraries need none)
# Debian's g++ is made for glibc. musl/g++.specs.in says what it links with instead, musl/include/ in what its headers
# differ where they were configured for another C library.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER gcc)
set(CMAKE_CXX_COMPILER g++)

get_filename_component(tree "${CMAKE_CURRENT_LIST_DIR}/../build/musl-tree" ABSOLUTE)
if(NOT EXISTS "${tree}/lib/libstdc++.so")
  message(FATAL_ERROR "${tree} is not there: ./hz for-checks musl makes it")
endif()
set(libraries /usr/lib/x86_64-linux-musl)
configure_file("${CMAKE_CURRENT_LIST_DIR}/musl/g++.specs.in" "${tree}/g++.specs" @ONLY)

execute_process(COMMAND g++ -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND g++ -print-file-name=include OUTPUT_VARIABLE own OUTPUT_STRIP_TRAILING_WHITESPACE)
set(c /usr/include/x86_64-linux-musl "${own}" "${tree}/include")
set(cxx "${CMAKE_CURRENT_LIST_DIR}/musl/include" /usr/include/c++/${version}
        /usr/include/x86_64-linux-gnu/c++/${version} ${c})
list(JOIN c " -isystem " c)
list(JOIN cxx " -isystem " cxx)
set(CMAKE_C_FLAGS_INIT "-nostdinc -isystem ${c}")
set(CMAKE_CXX_FLAGS_INIT "-nostdinc -isystem ${cxx}")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-specs=${tree}/g++.specs")
endforeach()
set(CMAKE_FIND_ROOT_PATH "${tree}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
