# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install`: libraries, headers, find_package(hakozuna), one pkg-config file per line and one of the default
# line. Also as a part of another project, which may then export what links with us.
include(CMakePackageConfigHelpers)

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hakozuna")
get_property(libraries GLOBAL PROPERTY HZ_LIBRARIES)

install(TARGETS ${libraries} EXPORT hakozuna-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT hakozuna-targets NAMESPACE hakozuna:: DESTINATION "${config_dir}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/hakozuna" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/hakozuna")

configure_package_config_file(package/hakozuna-config.cmake.in hakozuna-config.cmake
  INSTALL_DESTINATION "${config_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(hakozuna-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/hakozuna-config.cmake" "${PROJECT_BINARY_DIR}/hakozuna-config-version.cmake"
        DESTINATION "${config_dir}")

if(HZ_DROP_IN)
  # Relative to the file itself where possible, so that an installed tree may be moved.
  file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  install(FILES "$<TARGET_FILE_DIR:hakozuna-${HZ_DEFAULT_LINE}>/libhakozuna.so"
                "$<TARGET_FILE_DIR:hakozuna-${HZ_DEFAULT_LINE}-static>/libhakozuna.a"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  function(hz_install_pkg_config module line)
    configure_file(package/hakozuna.pc.in ${module}.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${module}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  endfunction()
  hz_install_pkg_config(hakozuna ${HZ_DEFAULT_LINE})
  foreach(line IN LISTS HZ_LINE_NAMES)
    hz_install_pkg_config(hakozuna-${line} ${line})
  endforeach()
endif()

# Last, so that every file is there. A project that we are a part of has a bill of its own to write.
if(PROJECT_IS_TOP_LEVEL)
  configure_file(package/sbom.cmake.in sbom.cmake @ONLY)
  install(SCRIPT "${PROJECT_BINARY_DIR}/sbom.cmake")
endif()
