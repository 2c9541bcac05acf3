# SPDX-License-Identifier: Apache-2.0
#
# Tests that run scenes (scene.hpp), and those that only need to be served by preload. Included by CMakeLists.txt where
# there are drop-in libraries.
hz_test_program(life_scenes SOURCES scene_main.cpp ends_test.cpp mappings_test.cpp ${life_sources}
  unwinding_test.cpp)
foreach(line IN LISTS HZ_LINE_NAMES)
  hz_discover(life_scenes ${line} preload life LD_PRELOAD $<TARGET_FILE:${line}>)
endforeach()
