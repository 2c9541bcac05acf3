# SPDX-License-Identifier: Apache-2.0
#
# hz_bench_options(TARGET): how workloads are compiled.
# hz_bench_program(NAME SOURCES…): a workload program. It links no allocator, so whichever one is preloaded is measured.
# hz_bench_direct_programs(NAME SOURCES…): the same where nothing is preloaded (Windows): one program per line, NAME-LINE,
# linked with the line's direct API, and NAME with the C library behind the same names. What is compiled, all share.
include_guard(GLOBAL)
find_package(Threads REQUIRED)

set(hz_bench_root ${CMAKE_CURRENT_LIST_DIR}/..)

function(hz_bench_options name)
  # -O2 comes last and so holds in every build type: numbers of two trees must differ by the allocator alone.
  # -fno-builtin keeps the compiler from reasoning about malloc and free.
  set(flags -O2 -g -fno-builtin)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE -Wall -Wextra ${flags})
  target_include_directories(${name} PRIVATE ${hz_bench_root})
  list(JOIN flags " " text)
  set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  target_compile_definitions(${name} PRIVATE "HZ_BENCH_FLAGS=\"${compiler} ${text}\"")
endfunction()

function(hz_bench_program name)
  add_executable(${name} ${ARGN})
  hz_bench_options(${name})
  target_link_libraries(${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

function(hz_bench_direct_programs name)
  add_library(${name}-objects OBJECT ${ARGN})
  hz_bench_options(${name}-objects)
  # Helpers that Windows has in another way, by the same names.
  target_include_directories(${name}-objects BEFORE PRIVATE ${hz_bench_root}/windows)
  target_include_directories(${name}-objects PRIVATE ${hz_bench_root}/../include)
  add_executable(${name} $<TARGET_OBJECTS:${name}-objects> ${hz_bench_root}/windows/c_runtime.cpp)
  hz_bench_options(${name})
  target_include_directories(${name} PRIVATE ${hz_bench_root}/../include)
  target_link_libraries(${name} PRIVATE psapi)
  foreach(line IN LISTS HZ_LINE_NAMES)
    add_executable(${name}-${line} $<TARGET_OBJECTS:${name}-objects>)
    target_link_libraries(${name}-${line} PRIVATE hakozuna::${line}-direct psapi)
    set_target_properties(${name}-${line} PROPERTIES LINKER_LANGUAGE CXX)
  endforeach()
endfunction()
