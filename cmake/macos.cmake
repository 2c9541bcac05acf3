# SPDX-License-Identifier: Apache-2.0
#
# A toolchain file: macOS, compiled on another system by zig (`pip install ziglang`), which brings macOS's headers and the
# names that its libraries export. HZ_ZIG is zig, HZ_MACOS_PROCESSOR aarch64 or x86_64. On a Mac no toolchain file is needed.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HZ_ZIG HZ_MACOS_PROCESSOR)
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR ${HZ_MACOS_PROCESSOR})
set(CMAKE_C_COMPILER "${HZ_ZIG};cc")
set(CMAKE_CXX_COMPILER "${HZ_ZIG};c++")
# With a target CMake compiles to know a compiler, and links nothing; nor does it to try one. For a program of C++ zig
# would compile the C++ library first, for minutes.
set(CMAKE_C_COMPILER_TARGET ${HZ_MACOS_PROCESSOR}-macos.11.0)
set(CMAKE_CXX_COMPILER_TARGET ${HZ_MACOS_PROCESSOR}-macos.11.0)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# Archives of another system's objects; the table of their names, which ranlib would write, is part of them then.
set(CMAKE_C_ARCHIVE_CREATE "\"${HZ_ZIG}\" ar qcD <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_CREATE "\"${HZ_ZIG}\" ar qcD <TARGET> <OBJECTS>")
set(CMAKE_C_ARCHIVE_FINISH "")
set(CMAKE_CXX_ARCHIVE_FINISH "")
