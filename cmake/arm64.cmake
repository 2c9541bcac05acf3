# SPDX-License-Identifier: Apache-2.0
#
# A toolchain file: Linux on arm64, compiled on another machine by Debian's g++-aarch64-linux-gnu. What it builds runs
# here by QEMU's user mode, which `hz for-checks emulate aarch64` registers with the kernel; QEMU_LD_PREFIX says where the C
# library for it is.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
