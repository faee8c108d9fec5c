# `cpack` in the build folder: a Debian package of the program and its data, without libraries and headers. It needs what
# the program is linked with, as dpkg-shlibdeps finds it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the moeline team <moeline@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predicts how Mixture-of-Experts models run on GPU clusters")
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME moeline)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
include(CPack)
