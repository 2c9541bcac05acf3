# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install`: libraries, headers, find_package(hakozuna), one pkg-config file per line, one of the default line and
# one of jemalloc's interface. Also as a part of another project, which may then export what links with us. What is no part of another project is
# the launcher `hz`: with its man page and what shells need to complete it, it is installed with the whole alone. Who wants a
# part takes a component: libraries, development, launcher, documents.
include(CMakePackageConfigHelpers)

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hakozuna")
get_property(libraries GLOBAL PROPERTY HZ_LIBRARIES)

install(TARGETS ${libraries} EXPORT hakozuna-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libraries NAMELINK_COMPONENT development
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT libraries
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(EXPORT hakozuna-targets NAMESPACE hakozuna:: DESTINATION "${config_dir}" COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/hakozuna" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT development)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # Commands for gdb, which reads what our processes and their core files hold.
  install(FILES "${PROJECT_SOURCE_DIR}/package/gdb/hakozuna-gdb.py" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/hakozuna"
          COMPONENT development)
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/hakozuna"
        COMPONENT development)

configure_package_config_file(package/hakozuna-config.cmake.in hakozuna-config.cmake
  INSTALL_DESTINATION "${config_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(hakozuna-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/hakozuna-config.cmake" "${PROJECT_BINARY_DIR}/hakozuna-config-version.cmake"
        DESTINATION "${config_dir}" COMPONENT development)

if(HZ_DROP_IN)
  # Relative to the file itself where possible, so that an installed tree may be moved.
  file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  set(default_names "$<TARGET_FILE_DIR:hakozuna-${HZ_DEFAULT_LINE}>/libhakozuna${CMAKE_SHARED_LIBRARY_SUFFIX}")
  if(TARGET hakozuna-${HZ_DEFAULT_LINE}-static)
    list(APPEND default_names "$<TARGET_FILE_DIR:hakozuna-${HZ_DEFAULT_LINE}-static>/libhakozuna.a")
  endif()
  install(FILES ${default_names} DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
  if(NOT APPLE)  # wherever it stands: linkers drop what nothing before it needs
    set(pc_keep "-Wl,--push-state,--no-as-needed ")
    set(pc_as_before " -Wl,--pop-state")
  endif()
  function(hz_install_pkg_config module line)
    configure_file(package/hakozuna.pc.in ${module}.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${module}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
            COMPONENT development)
  endfunction()
  hz_install_pkg_config(hakozuna ${HZ_DEFAULT_LINE})
  foreach(line IN LISTS HZ_LINE_NAMES)
    hz_install_pkg_config(hakozuna-${line} ${line})
  endforeach()
  if(TARGET hakozuna-je)
    hz_install_pkg_config(hakozuna-je "hakozuna with jemalloc's functions")
  endif()
endif()

# What hz does it does by the means of ELF.
if(PROJECT_IS_TOP_LEVEL AND HZ_DROP_IN AND NOT APPLE)
  # An installed hz reads there what it finds in the source tree otherwise: the place is relative to it, so that the tree
  # may be moved.
  set(facts_dir "${CMAKE_INSTALL_BINDIR}/../share/hakozuna")
  file(RELATIVE_PATH bin_to_libraries "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  list(JOIN HZ_LINE_NAMES " " lines)
  configure_file(package/installed.sh.in installed.sh @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/installed.sh" DESTINATION "${facts_dir}" COMPONENT launcher)
  # CMake says nothing of a folder that is missing.
  install(CODE "if(NOT EXISTS \"${PROJECT_SOURCE_DIR}/observe/hakozuna_observe/__main__.py\")
    message(FATAL_ERROR \"observe/ is missing, which hz stat needs\")
  endif()" COMPONENT launcher)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/observe/hakozuna_observe" DESTINATION "${facts_dir}/python" COMPONENT launcher
          FILES_MATCHING PATTERN "*.py" PATTERN "*.html")
  # Of the lab, what `hz run --measure` and `hz tune` import: it needs no package but numpy.
  foreach(module IN ITEMS __init__ contender findings machine measure own paths process proof stats tune watch)
    install(FILES "${PROJECT_SOURCE_DIR}/lab/hakozuna_lab/${module}.py" DESTINATION "${facts_dir}/python/hakozuna_lab"
            COMPONENT launcher)
  endforeach()
  install(PROGRAMS "${PROJECT_SOURCE_DIR}/hz" DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT launcher)
  install(FILES "${PROJECT_SOURCE_DIR}/doc/man/hz.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT documents)
  install(FILES "${PROJECT_SOURCE_DIR}/doc/man/hakozuna.3" DESTINATION "${CMAKE_INSTALL_MANDIR}/man3" COMPONENT documents)
  # Where each shell looks for them of itself.
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/completion")
  foreach(completion IN ITEMS bash:bash-completion/completions/hz zsh:zsh/site-functions/_hz fish:fish/vendor_completions.d/hz.fish)
    string(REPLACE ":" ";" completion "${completion}")
    list(POP_FRONT completion shell file)
    get_filename_component(folder "${file}" DIRECTORY)
    get_filename_component(name "${file}" NAME)
    set(written "${PROJECT_BINARY_DIR}/completion/${name}")
    install(CODE "execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/hz\" completion ${shell} OUTPUT_FILE \"${written}\"
      COMMAND_ERROR_IS_FATAL ANY)" COMPONENT documents)
    install(FILES "${written}" DESTINATION "${CMAKE_INSTALL_DATADIR}/${folder}" COMPONENT documents)
  endforeach()
endif()

# Last, so that every file is there. A project that we are a part of has a bill of its own to write. What the libraries
# need on macOS it does not know.
if(PROJECT_IS_TOP_LEVEL AND NOT APPLE)
  configure_file(package/sbom.cmake.in sbom.cmake @ONLY)
  install(SCRIPT "${PROJECT_BINARY_DIR}/sbom.cmake")
endif()
