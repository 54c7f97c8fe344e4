# The libraries that the kernels and their tests need, from their sources: the packages hold binaries
# of the building machine. spdlog and fmt serve as headers, googletest is compiled.

set(headers ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(library spdlog fmt xxhash.h)
  file(CREATE_LINK /usr/include/${library} ${headers}/${library} SYMBOLIC)
endforeach()
set(XXHASH_INCLUDE_DIR ${headers})
add_library(spdlog_headers INTERFACE)
add_library(spdlog::spdlog ALIAS spdlog_headers)
target_include_directories(spdlog_headers SYSTEM INTERFACE ${headers})
target_compile_definitions(spdlog_headers INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

add_subdirectory(/usr/src/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
include(GoogleTest)
