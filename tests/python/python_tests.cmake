# A sanitized module needs the sanitizer's library loaded before Python itself, which frees not all that it has at its end.
set(environment PYTHONPATH=${CMAKE_BINARY_DIR}/python MOELINE_BINARY=$<TARGET_FILE:moeline> PYTHONDONTWRITEBYTECODE=1)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
                  OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(APPEND environment LD_PRELOAD=${runtime} ASAN_OPTIONS=detect_leaks=0)
endif()
add_test(NAME "the Python module gives what the program gives"
         COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_moeline.py)
set_tests_properties("the Python module gives what the program gives" PROPERTIES TIMEOUT 900 ENVIRONMENT
                     "${environment}")
