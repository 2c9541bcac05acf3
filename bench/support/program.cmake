# SPDX-License-Identifier: Apache-2.0
#
# hz_bench_program(NAME SOURCES…): a workload program. It links no allocator, so whichever one is preloaded is measured.
include_guard(GLOBAL)
find_package(Threads REQUIRED)

set(hz_bench_root ${CMAKE_CURRENT_LIST_DIR}/..)

function(hz_bench_program name)
  # -O2 comes last and so holds in every build type: numbers of two trees must differ by the allocator alone.
  # -fno-builtin keeps the compiler from reasoning about malloc and free.
  set(flags -O2 -g -fno-builtin)
  add_executable(${name} ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE -Wall -Wextra ${flags})
  target_include_directories(${name} PRIVATE ${hz_bench_root})
  list(JOIN flags " " text)
  set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  target_compile_definitions(${name} PRIVATE "HZ_BENCH_FLAGS=\"${compiler} ${text}\"")
  target_link_libraries(${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
