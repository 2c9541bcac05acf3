# SPDX-License-Identifier: Apache-2.0
#
# A toolchain file: Windows on x86-64, compiled on Debian by clang, with the headers, the C library and the C++ library
# of its g++-mingw-w64-x86-64-posix. clang, because a thread's variables are Windows' own then: gcc 12 looks each up by a
# function that allocates. lld, because GNU ld 2.40 takes the place of such a variable within a thread's storage for an
# address, and Windows, which moves programs and DLLs, would change it. What it builds runs here by Wine.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(triple x86_64-w64-mingw32)
set(CMAKE_C_COMPILER clang)
set(CMAKE_CXX_COMPILER clang++)
set(CMAKE_C_COMPILER_TARGET ${triple})
set(CMAKE_CXX_COMPILER_TARGET ${triple})
set(CMAKE_RC_COMPILER ${triple}-windres)
set(CMAKE_CROSSCOMPILING_EMULATOR "${CMAKE_CURRENT_LIST_DIR}/../test/windows/wine.sh")

# clang 14 looks for neither where Debian has them.
file(GLOB gcc_folder LIST_DIRECTORIES TRUE /usr/lib/gcc/${triple}/*-posix)
set(CMAKE_CXX_FLAGS_INIT
  "-stdlib++-isystem ${gcc_folder}/include/c++ -stdlib++-isystem ${gcc_folder}/include/c++/${triple}")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-L${gcc_folder} -B${gcc_folder} --ld-path=/usr/bin/ld.lld -static")
endforeach()
set(CMAKE_CXX_STANDARD_LIBRARIES
  "-Wl,--start-group -lstdc++ -lgcc_eh -lwinpthread -lmingw32 -lgcc -lmoldname -lmingwex -lmsvcrt -lkernel32 -Wl,--end-group"
  CACHE STRING "What every program of C++ is linked with")

set(CMAKE_FIND_ROOT_PATH /usr/${triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
