# Man pages, completion of shells and the functions of the Python module, made of the program's own help (describe/).
set(described ${CMAKE_BINARY_DIR}/described)
file(GLOB describe_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/describe/*.cpp)
add_executable(moeline_describe ${describe_sources})
target_link_libraries(moeline_describe PRIVATE moeline_cli moeline_warnings)
add_custom_command(OUTPUT ${described}/done BYPRODUCTS ${described}/python/commands.py
                   COMMAND moeline_describe ${described} COMMAND ${CMAKE_COMMAND} -E touch ${described}/done
                   DEPENDS moeline_describe)
add_custom_target(moeline_described ALL DEPENDS ${described}/done)
