# SPDX-License-Identifier: Apache-2.0
#
# hz_add_line(name struct header): the libraries of one line.
#   hakozuna::<name>         libhakozuna-<name>.so        replaces malloc and operator new, and has hz_*; needs libc alone
#   hakozuna::<name>-static  libhakozuna-<name>.a         the same, as one object: a program gets the whole surface or none
#   hakozuna::<name>-direct  libhakozuna-<name>-direct.a  hz_* only, beside any other malloc
# On macOS the first is a .dylib, and there is no second.
# On Windows the last, and two DLLs, each with an import library lib<its name>.dll.a:
#   hakozuna::<name>           hakozuna-<name>.dll           hz_* only
#   hakozuna::<name>-redirect  hakozuna-<name>-redirect.dll  the same, and the C runtime's malloc goes to this heap
# The targets behind these names, which are the same after installation, are called hakozuna-<name> and so on, so that
# they clash with nothing in a project that has this one as a part. HZ_DROP_IN=OFF leaves out the first two.
# hz_add_lines(enabled name struct header...): those of the lines that are enabled; sets HZ_LINE_NAMES.
# hz_add_jemalloc(): hakozuna::je, libhakozuna-je.so, line hakozuna with jemalloc's functions beside the others.
# hz_name_default(name): libhakozuna.so (.dylib) and libhakozuna.a, other names of that line's drop-in libraries.

include(CheckCXXSymbolExists)

set(HZ_SOURCE_DIR "${PROJECT_SOURCE_DIR}/src")
set(HZ_EXPORTS_MAP "${HZ_SOURCE_DIR}/export/exports.map")

set(HZ_COMPILE_OPTIONS
  -Wall -Wextra -Wshadow -Wconversion
  -Wno-invalid-offsetof  # of structs that derive from others: the compilers' promise, not the standard's (base/layout.hpp)
  $<$<BOOL:${HZ_WERROR}>:-Werror>
  # Without any optimisation what the C++ library has inline calls functions of its own, and we link with none of them.
  $<IF:$<CONFIG:Debug>,-O1,-O2> -g -gdwarf-4  # what valgrind 3.19 can read, whatever the compiler
  -fvisibility=hidden -fno-exceptions -fno-rtti -fno-threadsafe-statics
  $<$<PLATFORM_ID:Linux>:-ftls-model=initial-exec -fno-plt -fno-semantic-interposition>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-instantiation-after-specialization>  # hz7's (export/line.hpp)
  -falign-functions=64  # or where malloc and free happen to lie decides up to a tenth of the time of small blocks
  -fno-builtin  # or a compiler turns our calloc into a call of calloc
  # ... and GCC, for all that, a loop under a lock into one of memset, which the program may wrap (base/bytes.hpp).
  $<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>
  -fasynchronous-unwind-tables  # operator new throws through our frames, profilers unwind them
  -fcf-protection=none -fno-stack-protector
  -fno-lto  # symbols made weak in assembly, and an archive linked from objects, need machine code; parents may ask for it
  $<$<BOOL:${HZ_DROP_IN}>:-fomit-frame-pointer>
  # The same bytes wherever they are built: paths in debugging information are relative to the source tree, where a
  # debugger finds them when it is started there. The last that fits counts; clang has its own word for the build folder.
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=." "-ffile-prefix-map=${CMAKE_BINARY_DIR}=."
  $<$<CXX_COMPILER_ID:Clang>:-ffile-compilation-dir=.>
)

# Archives without dates, users and modes, also where that is not what binutils were built to do. macOS's ar knows no D.
if(NOT APPLE)
  set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> qcD <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> qD <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_CXX_ARCHIVE_FINISH "<CMAKE_RANLIB> -D <TARGET>")
endif()

# A new_handler may throw, and a nothrow new must catch it: see the file.
set_source_files_properties("${HZ_SOURCE_DIR}/export/new_handler.cpp" PROPERTIES COMPILE_OPTIONS -fexceptions)

# Their last call must be a jump, also where little is optimised: see the files.
set_source_files_properties("${HZ_SOURCE_DIR}/export/dlopen.cpp" "${HZ_SOURCE_DIR}/export/dlsym.cpp"
  PROPERTIES COMPILE_OPTIONS -foptimize-sibling-calls)

# It calls realloc by its name: see the file.
set_source_files_properties("${HZ_SOURCE_DIR}/export/reallocarray.cpp" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# What a system has to itself in src/os/ begins with its name, and so does what others have.
if(WIN32)
  set(HZ_OTHER_SYSTEMS "(darwin|linux|posix)")
  # What it is written for: Windows 10.
  add_compile_definitions(_WIN32_WINNT=0x0A00)
  set(HZ_WINDOWS_LIBRARIES synchronization ntdll)
elseif(APPLE)
  set(HZ_OTHER_SYSTEMS "(linux|windows)")
  # There malloc is libmalloc's, which is told of our heap.
  set(HZ_DROP_IN_SOURCES "${HZ_SOURCE_DIR}/export/darwin_zone.cpp")
else()
  set(HZ_OTHER_SYSTEMS "(darwin|windows)")
endif()

# What is about glibc's own loader and its private names has no counterpart where the C library is another one: there no
# program calls the names, the loader resolves no IFUNCs, dlopen knows no RTLD_DEEPBIND, malloc is in no library that a
# program names, and sigaction has no second name.
check_cxx_symbol_exists(__GLIBC__ features.h HZ_GLIBC)
set(HZ_GLIBC_SOURCES dlopen.cpp dlsym.cpp early.cpp glibc_names.cpp signals.cpp)
list(TRANSFORM HZ_GLIBC_SOURCES PREPEND "${HZ_SOURCE_DIR}/export/")
if(NOT APPLE)
  file(GLOB HZ_DROP_IN_SOURCES CONFIGURE_DEPENDS "${HZ_SOURCE_DIR}/export/*.cpp")
  list(FILTER HZ_DROP_IN_SOURCES EXCLUDE REGEX "/export/(darwin|direct|windows)[^/]*$")
  if(NOT HZ_GLIBC)
    list(REMOVE_ITEM HZ_DROP_IN_SOURCES ${HZ_GLIBC_SOURCES})
  endif()
endif()

# What is of Windows alone in src/export/, and what its DLLs export.
file(GLOB HZ_REDIRECT_SOURCES CONFIGURE_DEPENDS "${HZ_SOURCE_DIR}/export/windows*.cpp")
if(WIN32)
  set(HZ_EXPORTS_DEF "${PROJECT_BINARY_DIR}/exports.def")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${HZ_EXPORTS_MAP}")
  file(READ "${HZ_EXPORTS_MAP}" map)
  string(REPLACE ";" "\n" map "${map}")
  string(REGEX MATCHALL " hz_[a-z_]+\n" names "${map}")
  string(JOIN "" names ${names})
  file(CONFIGURE OUTPUT "${HZ_EXPORTS_DEF}" CONTENT "EXPORTS\n${names}" @ONLY)
endif()

# The objects that the libraries of a line are made of, with a line's own options. UNITY_BUILD of them is for those that are
# linked all or none: each brings the slow paths of the whole heap, which compilers then see once.
function(hz_add_objects target options)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PRIVATE "${HZ_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
  target_compile_options(${target} PRIVATE ${HZ_COMPILE_OPTIONS} ${options})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
endfunction()

function(hz_add_line_objects target options struct header)
  hz_add_objects(${target} "${options}" ${ARGN})
  target_compile_definitions(${target} PRIVATE "HZ_LINE_HEADER=\"${header}\"" HZ_LINE=${struct})
endfunction()

# What knows no line: compiled once for all lines, but for those with options of their own.
function(hz_add_common_objects name options result)
  set(target hakozuna-common-objects)
  if(options)
    set(target hakozuna-${name}-common-objects)
  endif()
  if(NOT TARGET ${target})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS
      "${HZ_SOURCE_DIR}/os/*.cpp" "${HZ_SOURCE_DIR}/box/*.cpp" "${HZ_SOURCE_DIR}/heap/*/*.cpp")
    list(FILTER sources EXCLUDE REGEX "/os/${HZ_OTHER_SYSTEMS}[^/]*$")
    hz_add_objects(${target} "${options}" ${sources})
  endif()
  set(${result} ${target} PARENT_SCOPE)
endfunction()

# What all three libraries of a line have in common.
function(hz_finish_library target)
  string(SUBSTRING ${target} 9 -1 name)  # without "hakozuna-"
  add_library(hakozuna::${name} ALIAS ${target})
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  string(REGEX REPLACE "-static$" "" output ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output} EXPORT_NAME ${name} LINKER_LANGUAGE CXX)
  set_property(GLOBAL APPEND PROPERTY HZ_LIBRARIES ${target})
endfunction()

function(hz_add_shared target)
  add_library(${target} SHARED ${ARGN})
  set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  hz_finish_library(${target})
  if(APPLE)
    # As C: without the C++ library.
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
    return()
  endif()
  target_link_options(${target} PRIVATE
    -nodefaultlibs -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,-Bsymbolic-functions
    "-Wl,--dynamic-list=${HZ_SOURCE_DIR}/export/replaceable.list"  # but for these
    "-Wl,--version-script=${HZ_EXPORTS_MAP}")
  target_link_libraries(${target} PRIVATE -Wl,--as-needed -lc -lgcc)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${HZ_EXPORTS_MAP}")
endfunction()

function(hz_add_dll target)
  add_library(${target} SHARED ${ARGN} "${HZ_EXPORTS_DEF}")
  target_link_libraries(${target} PRIVATE ${HZ_WINDOWS_LIBRARIES})
  target_link_options(${target} PRIVATE -Wl,--no-insert-timestamp)  # the same bytes at any time
  set_target_properties(${target} PROPERTIES PREFIX "" IMPORT_PREFIX lib)
  hz_finish_library(${target})
endfunction()

# For clang CMake takes LLVM's linker wherever there is one: the bytes of an archive must not depend on that.
set(HZ_JOINS_OBJECTS "${CMAKE_LINKER}")
if(HZ_JOINS_OBJECTS MATCHES "lld[^/]*$")
  find_program(HZ_GNU_LINKER NAMES ld.bfd)
  if(HZ_GNU_LINKER)
    set(HZ_JOINS_OBJECTS "${HZ_GNU_LINKER}")
  endif()
endif()

# A linker takes from an archive only the members it misses. Half of the malloc family from us and half from libc
# would be fatal, so the archive has one member.
function(hz_add_static target)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${target}.o")
  add_custom_command(OUTPUT "${object}"
    COMMAND "${HZ_JOINS_OBJECTS}" -r -o "${object}" ${ARGN}
    DEPENDS ${ARGN} COMMAND_EXPAND_LISTS VERBATIM)
  add_library(${target} STATIC "${object}")
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_link_libraries(${target} INTERFACE Threads::Threads)
  hz_finish_library(${target})
endfunction()

function(hz_add_line name struct header)
  set(target hakozuna-${name})
  set(options ${HZ_COMPILE_OPTIONS_${name}})
  file(GLOB direct_sources CONFIGURE_DEPENDS "${HZ_SOURCE_DIR}/export/direct*.cpp")
  hz_add_line_objects(${target}-core-objects "${options}" ${struct} ${header} ${direct_sources})
  # For users they stay apart: a linker takes what a program asks for.
  if(HZ_DEBUG)
    set_target_properties(${target}-core-objects PROPERTIES UNITY_BUILD ON)
  endif()
  hz_add_common_objects(${name} "${options}" common)
  set(core $<TARGET_OBJECTS:${target}-core-objects> $<TARGET_OBJECTS:${common}>)

  add_library(${target}-direct STATIC ${core})
  target_link_libraries(${target}-direct INTERFACE Threads::Threads ${HZ_WINDOWS_LIBRARIES})
  hz_finish_library(${target}-direct)

  if(WIN32)
    hz_add_dll(${target} ${core})
    hz_add_line_objects(${target}-redirect-objects "${options}" ${struct} ${header} ${HZ_REDIRECT_SOURCES})
    hz_add_dll(${target}-redirect ${core} $<TARGET_OBJECTS:${target}-redirect-objects>)
    # Both C runtimes must be there before it is. It is written for the first; of the second it has a function imported.
    target_link_libraries(${target}-redirect PRIVATE msvcrt ucrtbase)
    target_link_options(${target}-redirect PRIVATE -Wl,--undefined=__imp__malloc_base)
    # A program imports no DLL that it asks nothing of.
    target_link_options(${target}-redirect INTERFACE -Wl,--undefined=hz_version)
  endif()

  if(HZ_DROP_IN)
    hz_add_line_objects(${target}-drop-in-objects "${options}" ${struct} ${header} ${HZ_DROP_IN_SOURCES})
    # Not where size comes first: a compiler puts less inline of what has more callers, and a free of a known size took
    # three instructions more (test/golden).
    if(NOT options)
      set_target_properties(${target}-drop-in-objects PROPERTIES UNITY_BUILD ON)
    endif()
    set(drop_in $<TARGET_OBJECTS:${target}-drop-in-objects>)
    hz_add_shared(${target} ${core} ${drop_in})
    if(NOT APPLE)
      hz_add_static(${target}-static ${core} ${drop_in})
      # Its command names files; make must be told who makes them.
      add_dependencies(${target}-static ${target}-core-objects ${common} ${target}-drop-in-objects)
    endif()
  endif()
endfunction()

function(hz_add_jemalloc)
  set(line hakozuna-hakozuna)
  set(folder "${HZ_SOURCE_DIR}/export/jemalloc")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  hz_add_line_objects(hakozuna-je-objects "" Hakozuna line/hakozuna.hpp ${sources})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${HZ_EXPORTS_MAP}" "${folder}/exports.map")
  file(READ "${HZ_EXPORTS_MAP}" map)
  file(READ "${folder}/exports.map" more)
  string(REPLACE "  local:" "${more}  local:" map "${map}")
  set(HZ_EXPORTS_MAP "${CMAKE_CURRENT_BINARY_DIR}/hakozuna-je.map")
  file(GENERATE OUTPUT "${HZ_EXPORTS_MAP}" CONTENT "${map}")
  hz_add_shared(hakozuna-je $<TARGET_OBJECTS:${line}-core-objects> $<TARGET_OBJECTS:hakozuna-common-objects>
    $<TARGET_OBJECTS:${line}-drop-in-objects> $<TARGET_OBJECTS:hakozuna-je-objects>)
endfunction()

function(hz_add_lines enabled)
  set(known)
  set(lines ${ARGN})
  while(lines)
    list(POP_FRONT lines name struct header)
    list(APPEND known ${name})
    set(struct_${name} ${struct})
    set(header_${name} ${header})
  endwhile()
  if(NOT enabled)
    set(enabled ${known})
  endif()
  foreach(name IN LISTS enabled)
    if(NOT name IN_LIST known)
      list(JOIN known " " known)
      message(FATAL_ERROR "HZ_LINES_ENABLED: there is no line '${name}'; the lines are: ${known}")
    endif()
    hz_add_line(${name} ${struct_${name}} ${header_${name}})
  endforeach()
  set(HZ_LINE_NAMES ${enabled} PARENT_SCOPE)
endfunction()

function(hz_add_name target file name)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND "${CMAKE_COMMAND}" -E create_symlink ${file} $<TARGET_FILE_DIR:${target}>/${name})
endfunction()

function(hz_name_default line)
  set(target hakozuna-${line})
  hz_add_name(${target} $<TARGET_SONAME_FILE_NAME:${target}> libhakozuna${CMAKE_SHARED_LIBRARY_SUFFIX})
  if(TARGET ${target}-static)
    hz_add_name(${target}-static $<TARGET_FILE_NAME:${target}-static> libhakozuna.a)
  endif()
endfunction()
