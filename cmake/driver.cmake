# SPDX-License-Identifier: BSD-3-Clause
# Drivers: shared libraries behind csrc/hal/hal.h. They link neither torch nor Python.
#
#   puone_add_kernels(NAME <target> SOURCES <file>... [DEFINITIONS <name>...] [OPTIONS <option>...])
#       device kernels, an object library for KERNELS of the next one or of puone_add_backend()
#   puone_add_driver(NAME <name> [SOURCES <file>...] [KERNELS <target>...] [FOR_TESTS])
#       libpuone_<name>.so in PUONE_LIB_DIR, the target puone_<name>. It exports puone_hal_get and
#       nothing else, and is installed with the backend unless it is for tests.
#
# PUONE_SANITIZE=address|thread|undefined instruments both.
include_guard(GLOBAL)
set(PUONE_LIB_DIR "${CMAKE_BINARY_DIR}/lib" CACHE PATH "Where the shared libraries are put")
set(PUONE_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize, empty for none")
get_filename_component(PUONE_CSRC_DIR "${CMAKE_CURRENT_LIST_DIR}/../csrc" ABSOLUTE)
include("${PUONE_CSRC_DIR}/hal/kernels.cmake")
# Kernels touch no errno and no floating-point traps; knowing that, the compiler can vectorise.
set(PUONE_KERNEL_OPTIONS -fno-math-errno -fno-trapping-math)

# Flags and include path common to all drivers, as one interface target.
add_library(puone_driver_options INTERFACE)
target_include_directories(puone_driver_options INTERFACE
  "${PUONE_CSRC_DIR}" "${PUONE_GENERATED_DIR}")
target_compile_features(puone_driver_options INTERFACE cxx_std_20)
set(host_code $<COMPILE_LANGUAGE:C,CXX>)
target_compile_options(puone_driver_options INTERFACE "$<${host_code}:-Wall;-Wextra>")
if(PUONE_SANITIZE)
  # Without "enum": a caller in C may pass any value for one, and the drivers check.
  target_compile_options(puone_driver_options INTERFACE
    "$<${host_code}:-fsanitize=${PUONE_SANITIZE};-fno-sanitize=enum;-fno-sanitize-recover=all>"
    "$<${host_code}:-fno-omit-frame-pointer;-g1;-O1>")
  target_link_options(puone_driver_options INTERFACE -fsanitize=${PUONE_SANITIZE})
  target_compile_definitions(puone_driver_options INTERFACE PUONE_SANITIZED)
endif()

# Private to what these functions build, whatever the project says.
function(puone_hide_symbols target)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

function(puone_add_kernels)
  cmake_parse_arguments(PARSE_ARGV 0 kernels "" "NAME" "SOURCES;DEFINITIONS;OPTIONS")
  puone_check_arguments(puone_add_kernels kernels NAME SOURCES)
  add_library(${kernels_NAME} OBJECT ${kernels_SOURCES})
  puone_hide_symbols(${kernels_NAME})
  target_link_libraries(${kernels_NAME} PRIVATE puone_driver_options)
  target_compile_definitions(${kernels_NAME} PRIVATE ${kernels_DEFINITIONS})
  set(host_options ${PUONE_KERNEL_OPTIONS})
  if(NOT PUONE_SANITIZE)
    list(APPEND host_options -O3)
  endif()
  target_compile_options(${kernels_NAME} PRIVATE
    "$<$<COMPILE_LANGUAGE:C,CXX>:${host_options}>" ${kernels_OPTIONS})
endfunction()

function(puone_add_driver)
  cmake_parse_arguments(PARSE_ARGV 0 driver "FOR_TESTS" "NAME" "SOURCES;KERNELS")
  puone_check_arguments(puone_add_driver driver NAME)
  set(target puone_${driver_NAME})
  add_library(${target} SHARED ${driver_SOURCES})
  puone_hide_symbols(${target})
  if(NOT driver_FOR_TESTS)
    set_property(GLOBAL APPEND PROPERTY PUONE_DRIVERS ${driver_NAME})
  endif()
  target_link_libraries(${target} PRIVATE puone_driver_options ${driver_KERNELS})
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PUONE_LIB_DIR}")
  set(exports "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/driver.map")
  target_link_options(${target} PRIVATE
    "-Wl,--version-script=${exports}" -Wl,--no-undefined-version)
  if(NOT PUONE_SANITIZE) # which leaves symbols to the program
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${exports}")
endfunction()

# A misspelt keyword, or one that is missing, is an error of its own.
macro(puone_check_arguments function prefix)
  if(DEFINED ${prefix}_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function} was called with unknown arguments: ${${prefix}_UNPARSED_ARGUMENTS}")
  endif()
  if(DEFINED ${prefix}_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${function} was called without values of ${${prefix}_KEYWORDS_MISSING_VALUES}")
  endif()
  foreach(required IN ITEMS ${ARGN})
    if(NOT DEFINED ${prefix}_${required})
      message(FATAL_ERROR "${function} was called without ${required}")
    endif()
  endforeach()
endmacro()
