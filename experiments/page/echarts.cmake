# ECharts for pages of plots, by npm, as package-lock.json pins it: MOELINE_ECHARTS is where it lies, or would.
# Without npm or its registry everything builds, and what needs a page says so when it is called.
set(page_source ${CMAKE_CURRENT_LIST_DIR})
set(page_build ${CMAKE_BINARY_DIR}/page)
set(MOELINE_ECHARTS ${page_build}/echarts.min.js)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_source}/package-lock.json)

# Of another version than the lock's it is removed, not used.
set(lock package-lock.json)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${page_source}/${lock} ${page_build}/${lock}
                RESULT_VARIABLE lock_differs OUTPUT_QUIET ERROR_QUIET)
if(lock_differs OR NOT EXISTS ${MOELINE_ECHARTS})
  file(REMOVE_RECURSE ${page_build})
  find_program(NPM npm)
  if(NPM)
    file(COPY ${page_source}/package.json ${page_source}/${lock} ${page_source}/.npmrc DESTINATION ${page_build})
    execute_process(COMMAND ${NPM} ci --fetch-retries=1 WORKING_DIRECTORY ${page_build} TIMEOUT 90
                    RESULT_VARIABLE failed OUTPUT_FILE npm.log ERROR_FILE npm.log)
    if(failed EQUAL 0)
      file(COPY ${page_build}/node_modules/echarts/dist/echarts.min.js DESTINATION ${page_build})
    endif()
    file(REMOVE_RECURSE ${page_build}/node_modules)  # 60 MB of which one file is used
  endif()
  if(NOT EXISTS ${MOELINE_ECHARTS})
    message(STATUS "no ECharts by npm: pages of plots will not be written")
  endif()
endif()
