# SPDX-License-Identifier: Apache-2.0
#
# Programs that call malloc while the loader is still at work. Included by CMakeLists.txt where there are drop-in
# libraries.
function(early_library name visibility binding)
  add_library(hz-early-${name} SHARED early_library.c)
  target_compile_definitions(hz-early-${name} PRIVATE EARLY_PREFIX=${name} EARLY_VISIBILITY=\"${visibility}\")
  target_link_options(hz-early-${name} PRIVATE -Wl,-z,${binding})
  target_compile_options(hz-early-${name} PRIVATE -Wall -Wextra -fno-builtin)
endfunction()
early_library(before hidden now)
early_library(needed default lazy)

function(early_program name binding)
  add_executable(${name} early.c)
  target_compile_options(${name} PRIVATE -Wall -Wextra -fno-builtin)
  target_link_options(${name} PRIVATE -Wl,-z,${binding} -Wl,--no-as-needed)
  target_link_libraries(${name} PRIVATE ${ARGN} hz-early-needed ${CMAKE_DL_LIBS})
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON LINKER_LANGUAGE C)
endfunction()

foreach(binding lazy now)
  early_program(early_${binding} ${binding})
  foreach(line IN LISTS HZ_LINE_NAMES)
    set(name life.${line}.preload.early_${binding})
    add_test(NAME ${name} COMMAND early_${binding})
    set_tests_properties(${name} PROPERTIES LABELS life TIMEOUT 60
      ENVIRONMENT "HZ_TEST_LINE=${line};LD_PRELOAD=$<TARGET_FILE:hakozuna::${line}>")
    add_test(NAME ${name}.after_another COMMAND early_${binding} before_check)
    set_tests_properties(${name}.after_another PROPERTIES LABELS life TIMEOUT 60
      ENVIRONMENT "HZ_TEST_LINE=${line};LD_PRELOAD=$<TARGET_FILE:hz-early-before>:$<TARGET_FILE:hakozuna::${line}>")

    early_program(early_${binding}_${line} ${binding} hakozuna::${line}-static)
    set(name life.${line}.static.early_${binding})
    add_test(NAME ${name} COMMAND early_${binding}_${line})
    set_tests_properties(${name} PROPERTIES LABELS life TIMEOUT 60 ENVIRONMENT HZ_TEST_LINE=${line})
  endforeach()
endforeach()
