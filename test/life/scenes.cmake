# SPDX-License-Identifier: Apache-2.0
#
# Tests that run scenes (scene.hpp), and those that only need to be served by preload. Included by CMakeLists.txt where
# there are drop-in libraries.
hz_test_program(life_scenes SOURCES scene_main.cpp ends_test.cpp mappings_test.cpp ${life_sources}
  accounting_test.cpp exit_key_test.cpp namespace_test.cpp raw_fork_test.cpp restrictions_test.cpp statistics_test.cpp
  unwinding_test.cpp)
target_compile_definitions(life_scenes PRIVATE HZ_TEST_PAGE_OF_CALLS="${PROJECT_SOURCE_DIR}/doc/life.md")
foreach(line IN LISTS HZ_LINE_NAMES)
  hz_discover(life_scenes ${line} preload life LD_PRELOAD $<TARGET_FILE:hakozuna::${line}> ALONE .*)
endforeach()

# The same work on systems with other pages, by programs of a line's objects: their system calls go to the emulation.
hz_lines(pages_lines life.pages)
foreach(page 4096 16384 65536)
  hz_test_objects(life_pages_${page} SOURCES ../surface/main.cpp pages_test.cpp emulated_pages.cpp
    DEFINITIONS HZ_TEST_PAGE=${page})
  foreach(line IN LISTS pages_lines)
    set(program life_pages_${page}_${line})
    hz_link_program(${program} life_pages_${page} hakozuna::${line}-direct)
    target_sources(${program} PRIVATE $<TARGET_OBJECTS:hakozuna-${line}-drop-in-objects>)
    target_link_options(${program} PRIVATE -Wl,--wrap=hz_system_call -Wl,--wrap=_ZN2hz2os15auxiliary_valueEm)
    hz_discover(${program} ${line} pages_of_${page} life ALONE .*)
  endforeach()
endforeach()

# Options and setuid programs.
foreach(line IN LISTS HZ_LINE_NAMES)
  add_executable(life_secure_${line} secure_subject.c)
  target_link_libraries(life_secure_${line} PRIVATE hakozuna::${line}-static)
  set_target_properties(life_secure_${line} PROPERTIES LINKER_LANGUAGE C)
  add_test(NAME life.${line}.static.secure
           COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/secure.sh $<TARGET_FILE:life_secure_${line}>)
  set_tests_properties(life.${line}.static.secure PROPERTIES LABELS life TIMEOUT 60 SKIP_RETURN_CODE 77
    ENVIRONMENT HZ_TEST_LINE=${line})
endforeach()
