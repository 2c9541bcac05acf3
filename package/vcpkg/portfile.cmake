# SPDX-License-Identifier: Apache-2.0
#
# The port for vcpkg: the libraries of the tree that it lies in, without the launcher. Read by vcpkg. A registry's copy gets
# the sources of a release by vcpkg_from_github instead.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DHZ_BUILD_TESTS=OFF -DHZ_BUILD_BENCH=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/hakozuna)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/bin"
  "${CURRENT_PACKAGES_DIR}/debug/bin"
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/bash-completion"
  "${CURRENT_PACKAGES_DIR}/share/doc"
  "${CURRENT_PACKAGES_DIR}/share/fish"
  "${CURRENT_PACKAGES_DIR}/share/hakozuna/installed.sh"
  "${CURRENT_PACKAGES_DIR}/share/hakozuna/python"
  "${CURRENT_PACKAGES_DIR}/share/man"
  "${CURRENT_PACKAGES_DIR}/share/zsh"
)
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
