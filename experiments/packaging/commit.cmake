# Writes what commit a program is built from, of which `--version` speaks: HASH and DATE into FILE, where they change. Run
# with every build. Not of an archive without a repository.
#   cmake -D SOURCE=FOLDER -D FILE=HEADER -P commit.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} log -1 "--format= (%h, %cs)" OUTPUT_VARIABLE commit ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
if(commit AND changes)
  string(REPLACE ")" ", with changes)" commit "${commit}")
endif()
file(CONFIGURE OUTPUT ${FILE} CONTENT "#define MOELINE_COMMIT \"@commit@\"\n" @ONLY)
