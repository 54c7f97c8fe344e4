# Flags and target helpers shared by every folder.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${TANDEM_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TANDEM_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TANDEM_CCACHE})
endif()

add_library(tandem_flags INTERFACE)
target_include_directories(tandem_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(tandem_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor>
  # A float expression has one value on every machine: no contraction that the source does not spell.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
if(TANDEM_WERROR)
  target_compile_options(tandem_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(TANDEM_SANITIZE)
  # g++ 12 takes parts of std::regex for uninitialized once they are instrumented.
  add_compile_options(-fsanitize=${TANDEM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=${TANDEM_SANITIZE})
endif()
if(TANDEM_BUILD_FUZZERS)
  # The libraries report their coverage too, or the fuzzer would be blind to what it exercises.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# tandem_library(<name> SOURCES ... HEADERS ... DEPS ... PRIVATE_DEPS ...)
# One static library; each header in HEADERS must compile alone (target all_verify_interface_header_sets).
function(tandem_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC tandem_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
    target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE tandem_flags ${ARG_DEPS})
    target_sources(${name} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  endif()
endfunction()

# tandem_test(<name> SOURCES ... DEPS ... [LABELS ...]): one GoogleTest binary, each case a ctest test.
function(tandem_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE tandem_test_support ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  # A bound on a hang, not on speed: under the thread sanitizer the whole-model tests take many minutes.
  set(timeout 900)
  if(TANDEM_SANITIZE)
    set(timeout 3600)
  endif()
  set(properties TIMEOUT ${timeout})
  if(TANDEM_SANITIZE STREQUAL "thread")
    list(APPEND properties ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan_suppressions.txt")
  endif()
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# tandem_fuzzer(<name> SOURCES ... DEPS ...): a libFuzzer target with TANDEM_BUILD_FUZZERS and clang; in any other build
# a test that replays the seeds of tests/fuzz/corpus/<name>, whole and with fixed mutations.
function(tandem_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(TANDEM_BUILD_FUZZERS)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME ${name}.Replay COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endif()
  target_link_libraries(${name} PRIVATE tandem_flags ${ARG_DEPS})
endfunction()

# Adds each of the folders that is there.
function(add_subdirectories)
  foreach(folder IN LISTS ARGN)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()
