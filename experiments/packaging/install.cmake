# `cmake --install`: the program in bin/, its data in share/moeline, and the libraries with their headers under moeline/,
# which `find_package(moeline)` finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/moeline)
set(data_dir share/moeline)  # where the program looks (model/base/file.hpp)

# moeline::engine stands alone; moeline::moeline is all but the command line.
set_target_properties(moeline_engine PROPERTIES EXPORT_NAME engine)
set_target_properties(moeline_timeline PROPERTIES EXPORT_NAME timeline)
set_target_properties(moeline_model PROPERTIES EXPORT_NAME model)
set_target_properties(moeline_schedules PROPERTIES EXPORT_NAME schedules)
set_target_properties(moeline_fit PROPERTIES EXPORT_NAME fit)
set_target_properties(moeline_run PROPERTIES EXPORT_NAME run)
set_target_properties(moeline_runs PROPERTIES EXPORT_NAME moeline)
set(include_dir ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS moeline_engine EXPORT engine ARCHIVE INCLUDES DESTINATION ${include_dir} ${include_dir}/moeline)
install(TARGETS moeline_timeline moeline_model moeline_schedules moeline_fit moeline_run moeline_runs EXPORT moeline ARCHIVE)
install(EXPORT engine NAMESPACE moeline:: DESTINATION ${package_dir} FILE engine.cmake)
install(EXPORT moeline NAMESPACE moeline:: DESTINATION ${package_dir} FILE moeline.cmake)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/moeline-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/moeline-config.cmake ${CMAKE_BINARY_DIR}/moeline-config-version.cmake
        DESTINATION ${package_dir})

# Folders of model/ are the headers' first names, the others keep theirs.
install(DIRECTORY model/ DESTINATION ${include_dir}/moeline FILES_MATCHING PATTERN "*.hpp" PATTERN "zoo" EXCLUDE)
foreach(folder schedules calib/fit experiments/memory experiments/run experiments/validate experiments/sweep experiments/plan)
  install(DIRECTORY ${folder}/ DESTINATION ${include_dir}/moeline/${folder} FILES_MATCHING PATTERN "*.hpp")
endforeach()

# From here on what the Debian package has.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
install(TARGETS moeline RUNTIME)
install(DIRECTORY ${described}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${described}/completion/moeline.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME moeline)
install(FILES ${described}/completion/_moeline DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${described}/completion/moeline.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
if(TARGET moeline_python)  # where Debian's Python looks below /usr
  install(FILES ${python_files} DESTINATION lib/python3/dist-packages/moeline)
  install(TARGETS moeline_python LIBRARY DESTINATION lib/python3/dist-packages/moeline)
endif()
install(DIRECTORY model/zoo DESTINATION ${data_dir}/model)
install(DIRECTORY hwprofiles DESTINATION ${data_dir})
install(DIRECTORY schedules DESTINATION ${data_dir} FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY tests/published DESTINATION ${data_dir}/tests FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY calib/data calib/tables DESTINATION ${data_dir}/calib)
install(DIRECTORY experiments/init DESTINATION ${data_dir}/experiments FILES_MATCHING PATTERN "*.yaml.in")
install(DIRECTORY experiments/page experiments/timeline_page DESTINATION ${data_dir}/experiments
        FILES_MATCHING PATTERN "*.html" PATTERN "*.css" PATTERN "*.js")
install(DIRECTORY experiments/schema DESTINATION ${data_dir}/experiments FILES_MATCHING PATTERN "*.json")
install(FILES ${MOELINE_ECHARTS} DESTINATION ${data_dir}/experiments/page OPTIONAL)
# One folder per question, each with a README and scenarios, studies or plans.
file(GLOB questions CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} experiments/studies/*/*.yaml)
list(TRANSFORM questions REPLACE "/[^/]*$" "")
list(REMOVE_DUPLICATES questions)
foreach(folder ${questions})
  install(DIRECTORY ${folder} DESTINATION ${data_dir}/experiments/studies)
endforeach()
