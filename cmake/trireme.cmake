# The three verbs with which every folder describes itself: a library, a program, a test.

add_library(trireme_options INTERFACE)
target_compile_features(trireme_options INTERFACE cxx_std_20)
target_include_directories(trireme_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(trireme_options INTERFACE
  -Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Werror -ffp-contract=off
  -Wno-missing-field-initializers)  # designated initialisers leave the rest at its default
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The baseline every x86-64 host of the last decade runs; faster code is chosen at run time.
  target_compile_options(trireme_options INTERFACE -march=x86-64-v2)
endif()
if(TRIREME_SANITIZE)
  target_compile_options(trireme_options INTERFACE
    -fsanitize=${TRIREME_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    -Wno-error)  # gcc then warns of the insides of the standard library and abseil; other builds are strict
  target_link_options(trireme_options INTERFACE -fsanitize=${TRIREME_SANITIZE})
endif()
if(TRIREME_FUZZ)
  target_compile_options(trireme_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# trireme_library(NAME SOURCES a.cc ... DEPS target ...): the library of one folder.
function(trireme_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC trireme_options ${ARG_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE trireme_options ${ARG_DEPS})
  endif()
endfunction()

# A sanitizer makes a test several times as slow.
set(TRIREME_TIMEOUT_FACTOR 1)
if(TRIREME_SANITIZE)
  set(TRIREME_TIMEOUT_FACTOR 10)
endif()

# trireme_test(NAME LABEL fast SOURCES a_test.cc ... DEPS target ...): one test program of a folder.
function(trireme_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE trireme_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * ${TRIREME_TIMEOUT_FACTOR}")
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
  if(TRIREME_SANITIZE MATCHES "thread")
    set_tests_properties(${name} PROPERTIES ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/thread_sanitizer_suppressions.txt")
  endif()
endfunction()
