# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install`: libraries, headers, find_package(hakozuna), one pkg-config file per line and one of the default line; and `cpack -G DEB|TGZ`.
include(CMakePackageConfigHelpers)

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hakozuna")
get_property(libraries GLOBAL PROPERTY HZ_LIBRARIES)

install(TARGETS ${libraries} EXPORT hakozuna-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT hakozuna-targets NAMESPACE hakozuna:: DESTINATION "${config_dir}")
install(DIRECTORY include/hakozuna DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")

configure_package_config_file(package/hakozuna-config.cmake.in hakozuna-config.cmake
  INSTALL_DESTINATION "${config_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(hakozuna-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/hakozuna-config.cmake" "${PROJECT_BINARY_DIR}/hakozuna-config-version.cmake"
        DESTINATION "${config_dir}")

if(HZ_DROP_IN)
  # Relative to the file itself where possible, so that an installed tree may be moved.
  file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  install(FILES "$<TARGET_FILE_DIR:${HZ_DEFAULT_LINE}>/libhakozuna.so" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  foreach(line IN LISTS HZ_LINE_NAMES)
    list(APPEND modules "hakozuna-${line}")
  endforeach()
  foreach(module IN LISTS modules ITEMS hakozuna)
    string(REGEX REPLACE "^hakozuna$" "hakozuna-${HZ_DEFAULT_LINE}" line "${module}")
    string(REGEX REPLACE "^hakozuna-" "" line "${line}")
    configure_file(package/hakozuna.pc.in ${module}.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${module}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  endforeach()
endif()

set(CPACK_PACKAGE_NAME hakozuna)
set(CPACK_PACKAGE_VENDOR "Hakozuna")
set(CPACK_PACKAGE_CONTACT "Hakozuna")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
include(CPack)
