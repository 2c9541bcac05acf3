# SPDX-License-Identifier: Apache-2.0
#
# Plugins and who loads them. Included by CMakeLists.txt where there are drop-in libraries.
set(plugins ${CMAKE_CURRENT_BINARY_DIR}/plugins)

function(life_plugin name source folder)
  add_library(${name} SHARED ${source})
  target_compile_options(${name} PRIVATE -Wall -Wextra -fno-builtin)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${folder} LINKER_LANGUAGE C)
endfunction()

# dlopen is ours where it knows RTLD_DEEPBIND.
if(HZ_GLIBC)
  foreach(name lazy now flags)
    life_plugin(hz-plugin-${name} deepbind_plugin.c ${plugins})
  endforeach()
  target_link_options(hz-plugin-lazy PRIVATE -Wl,-z,lazy)
  foreach(name inner inner-too)
    life_plugin(hz-${name} deepbind_plugin.c ${plugins}/inner)
  endforeach()
  life_plugin(hz-host deepbind_host.c ${plugins})
  target_link_options(hz-host PRIVATE -Wl,--enable-new-dtags)
  target_link_libraries(hz-host PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(hz-host PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/inner")

  hz_test_objects(life_deepbind SOURCES ../surface/main.cpp deepbind_test.cpp
    DEFINITIONS "HZ_TEST_PLUGINS=\"${plugins}\"")
  hz_link_program(life_deepbind life_deepbind)
  foreach(line IN LISTS HZ_LINE_NAMES)
    hz_discover(life_deepbind ${line} preload life LD_PRELOAD $<TARGET_FILE:hakozuna::${line}> ALONE .*)
    hz_link_program(life_deepbind_${line} life_deepbind hakozuna::${line}-static)
    hz_discover(life_deepbind_${line} ${line} static life ALONE .*)
    list(APPEND deepbind_programs life_deepbind_${line})
  endforeach()
  foreach(program life_deepbind ${deepbind_programs})
    add_dependencies(${program} hz-plugin-lazy hz-plugin-now hz-plugin-flags hz-inner hz-inner-too hz-host)
  endforeach()

  # A jump to the next dlopen, in every library; and the check finds a call.
  set(tail_call ${CMAKE_CURRENT_LIST_DIR}/tail_call.py)
  foreach(line IN LISTS HZ_LINE_NAMES)
    add_test(NAME life.${line}.library.tail_call COMMAND Python3::Interpreter ${tail_call} $<TARGET_FILE:hakozuna::${line}>)
    set_tests_properties(life.${line}.library.tail_call PROPERTIES LABELS life)
  endforeach()
  add_library(hz-calling-dlopen SHARED ${PROJECT_SOURCE_DIR}/src/export/dlopen.cpp)
  target_include_directories(hz-calling-dlopen PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(hz-calling-dlopen PRIVATE HZ_LINE=Hakozuna "HZ_LINE_HEADER=\"line/hakozuna.hpp\"")
  target_compile_options(hz-calling-dlopen PRIVATE -fno-optimize-sibling-calls -fno-exceptions)
  add_test(NAME life.tail_call.fault-is-found
           COMMAND Python3::Interpreter ${tail_call} $<TARGET_FILE:hz-calling-dlopen>)
  set_tests_properties(life.tail_call.fault-is-found PROPERTIES LABELS life
                       PASS_REGULAR_EXPRESSION "has [1-9] indirect calls and 0 indirect jumps")
endif()

# Our library as something that is loaded late.
if(HZ_GLIBC)
  life_plugin(hz-tls-eater tls_eater.c ${plugins})
  hz_test_program(life_late SOURCES late_test.cpp)
  target_compile_definitions(life_late PRIVATE "HZ_TEST_EATER=\"$<TARGET_FILE:hz-tls-eater>\"")
  add_dependencies(life_late hz-tls-eater)
else()
  hz_test_program(life_late SOURCES late_on_musl_test.cpp)
endif()
foreach(line IN LISTS HZ_LINE_NAMES)
  hz_discover(life_late ${line} late life HZ_TEST_LIBRARY $<TARGET_FILE:hakozuna::${line}> ALONE .*)
endforeach()
