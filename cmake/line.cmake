# SPDX-License-Identifier: Apache-2.0
#
# hz_add_line(name struct header): the libraries of one line.
#   <name>         libhakozuna-<name>.so        replaces malloc and operator new, and has hz_*; needs libc alone
#   <name>-static  libhakozuna-<name>.a         the same, as one object: a program gets the whole surface or none
#   <name>-direct  libhakozuna-<name>-direct.a  hz_* only, beside any other malloc
# Each also answers to hakozuna::<target>, as it does after installation. HZ_DROP_IN=OFF leaves only the last.
# hz_name_default(name): libhakozuna.so, another name of that line's shared library.

set(HZ_SOURCE_DIR "${PROJECT_SOURCE_DIR}/src")
set(HZ_EXPORTS_MAP "${HZ_SOURCE_DIR}/export/exports.map")

set(HZ_COMPILE_OPTIONS
  -Wall -Wextra -Wshadow -Wconversion
  $<$<BOOL:${HZ_WERROR}>:-Werror>
  $<$<NOT:$<CONFIG:Debug>>:-O2> -g -gdwarf-4  # what valgrind 3.19 can read, whatever the compiler
  -fvisibility=hidden -fno-exceptions -fno-rtti -fno-threadsafe-statics
  -ftls-model=initial-exec -fno-plt -fno-semantic-interposition
  -fno-builtin  # or a compiler turns our calloc into a call of calloc
  -fasynchronous-unwind-tables  # operator new throws through our frames, profilers unwind them
  -fcf-protection=none -fno-stack-protector
  $<$<BOOL:${HZ_DROP_IN}>:-fomit-frame-pointer>
)

# A new_handler may throw, and a nothrow new must catch it: see the file.
set_source_files_properties("${HZ_SOURCE_DIR}/export/new_handler.cpp" PROPERTIES COMPILE_OPTIONS -fexceptions)

# Its last call must be a jump, also where little is optimised: see the file.
set_source_files_properties("${HZ_SOURCE_DIR}/export/dlopen.cpp" PROPERTIES COMPILE_OPTIONS -foptimize-sibling-calls)

# The objects that the libraries of a line are made of.
function(hz_add_objects target struct header)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PRIVATE "${HZ_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
  target_compile_definitions(${target} PRIVATE "HZ_LINE_HEADER=\"${header}\"" HZ_LINE=${struct})
  target_compile_options(${target} PRIVATE ${HZ_COMPILE_OPTIONS})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# What all three libraries of a line have in common.
function(hz_finish_library target)
  add_library(hakozuna::${target} ALIAS ${target})
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  string(REGEX REPLACE "-static$" "" output ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME hakozuna-${output} LINKER_LANGUAGE CXX)
  set_property(GLOBAL APPEND PROPERTY HZ_LIBRARIES ${target})
endfunction()

function(hz_add_shared target)
  add_library(${target} SHARED ${ARGN})
  target_link_options(${target} PRIVATE
    -nodefaultlibs -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,-Bsymbolic-functions
    "-Wl,--version-script=${HZ_EXPORTS_MAP}")
  target_link_libraries(${target} PRIVATE -Wl,--as-needed -lc -lgcc)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${HZ_EXPORTS_MAP}")
  hz_finish_library(${target})
endfunction()

# A linker takes from an archive only the members it misses. Half of the malloc family from us and half from libc
# would be fatal, so the archive has one member.
function(hz_add_static target)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${target}.o")
  add_custom_command(OUTPUT "${object}"
    COMMAND "${CMAKE_LINKER}" -r -o "${object}" ${ARGN}
    DEPENDS ${ARGN} COMMAND_EXPAND_LISTS VERBATIM)
  add_library(${target} STATIC "${object}")
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_link_libraries(${target} INTERFACE Threads::Threads)
  hz_finish_library(${target})
endfunction()

function(hz_add_line name struct header)
  set(direct_source "${HZ_SOURCE_DIR}/export/direct.cpp")
  file(GLOB os_sources CONFIGURE_DEPENDS "${HZ_SOURCE_DIR}/os/*.cpp")
  hz_add_objects(${name}-core-objects ${struct} ${header} "${direct_source}" ${os_sources})
  set(core $<TARGET_OBJECTS:${name}-core-objects>)

  add_library(${name}-direct STATIC ${core})
  target_link_libraries(${name}-direct INTERFACE Threads::Threads)
  hz_finish_library(${name}-direct)

  if(HZ_DROP_IN)
    file(GLOB drop_in_sources CONFIGURE_DEPENDS "${HZ_SOURCE_DIR}/export/*.cpp")
    list(REMOVE_ITEM drop_in_sources "${direct_source}")
    hz_add_objects(${name}-drop-in-objects ${struct} ${header} ${drop_in_sources})
    set(drop_in $<TARGET_OBJECTS:${name}-drop-in-objects>)
    hz_add_shared(${name} ${core} ${drop_in})
    hz_add_static(${name}-static ${core} ${drop_in})
  endif()
endfunction()

function(hz_name_default line)
  add_custom_command(TARGET ${line} POST_BUILD VERBATIM
    COMMAND "${CMAKE_COMMAND}" -E create_symlink $<TARGET_FILE_NAME:${line}> $<TARGET_FILE_DIR:${line}>/libhakozuna.so)
endfunction()
