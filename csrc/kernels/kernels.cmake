# SPDX-License-Identifier: BSD-3-Clause
# The device kernels, for a driver to compile.
#
#   puone_kernel_sources(<variable> <set>)  the sources of a set of kernels and their registry
#   puone_add_host_kernels(<target>)        compiles those of the set PUONE_KERNELS for the host, once
#                                           per instruction set, and links them into <target>
#   puone_add_module_dialect(<target> <flavour> [<option>...])
#                                           links what the sources of modules are compiled behind, in
#                                           the flavour host or simt, into <target>; the options are
#                                           those of amalgamate.py
#
# PUONE_KERNEL_LEVELS=native builds the best instruction set of this processor only, a third of the
# work, and `baseline` the one of every processor. PUONE_KERNELS chooses the set, one of
# `driver_sets` in csrc/hal/kernels.yaml: all; basic, which is what a driver by itself is tested
# with: copies, fills and delays; none.
set(PUONE_KERNELS_DIR "${CMAKE_CURRENT_LIST_DIR}")
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/driver.cmake")
include("${PUONE_GENERATED_DIR}/kernels/sources.cmake")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(PUONE_KERNEL_LEVELS baseline v3 v4 CACHE STRING "Instruction sets of the host kernels")
else()
  set(PUONE_KERNEL_LEVELS baseline CACHE STRING "Instruction sets of the host kernels")
endif()
set(PUONE_KERNELS all CACHE STRING "Which kernels: all, basic or none")

# The best level of the processor that builds, by what the driver itself asks (variants.cpp).
function(puone_native_level result)
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" OR CMAKE_CROSSCOMPILING)
    set(${result} baseline PARENT_SCOPE)
    return()
  endif()
  foreach(level IN ITEMS v4 v3)
    if(NOT DEFINED PUONE_HAS_${level})
      file(WRITE "${CMAKE_BINARY_DIR}/native_level.cpp"
        "int main() { return !__builtin_cpu_supports(\"x86-64-${level}\"); }\n")
      try_run(PUONE_HAS_${level} compiled
        "${CMAKE_BINARY_DIR}/native_level" "${CMAKE_BINARY_DIR}/native_level.cpp")
    endif()
    if(PUONE_HAS_${level} EQUAL 0)
      message(STATUS "kernels: instruction set ${level}, the best of this processor")
      set(${result} ${level} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} baseline PARENT_SCOPE)
endfunction()

# The levels that PUONE_KERNEL_LEVELS stands for.
function(puone_kernel_levels result)
  set(levels ${PUONE_KERNEL_LEVELS})
  if(levels STREQUAL "native")
    puone_native_level(levels)
  endif()
  set(${result} ${levels} PARENT_SCOPE)
endfunction()

function(puone_kernel_sources result set)
  if(NOT DEFINED PUONE_KERNEL_FAMILIES_${set})
    message(FATAL_ERROR "csrc/hal/kernels.yaml has no driver set \"${set}\"")
  endif()
  set(sources ${PUONE_KERNEL_FAMILIES_${set}})
  if(sources)
    list(APPEND sources cast)
  endif()
  list(TRANSFORM sources REPLACE "(.+)" "${PUONE_KERNELS_DIR}/\\1.cpp")
  set(${result} ${sources} "${PUONE_GENERATED_DIR}/kernels/registry_${set}.cpp" PARENT_SCOPE)
endfunction()

function(puone_add_host_kernels target)
  puone_kernel_sources(sources ${PUONE_KERNELS})
  if(gemm IN_LIST PUONE_KERNEL_FAMILIES_${PUONE_KERNELS})
    list(APPEND sources
      "${PUONE_KERNELS_DIR}/host/elementwise.cpp" "${PUONE_KERNELS_DIR}/host/gemm_tile.cpp")
  endif()
  # Random numbers are the same on every driver and processor, to the last bit.
  set_source_files_properties(
    "${PUONE_KERNELS_DIR}/random.cpp" "${PUONE_KERNELS_DIR}/sampling.cpp"
    PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
  puone_kernel_levels(levels)
  # Only variants.cpp knows the levels: another choice of them compiles no other source again.
  target_sources(${target} PRIVATE "${PUONE_KERNELS_DIR}/variants.cpp")
  list(TRANSFORM levels PREPEND PUONE_KERNELS_ OUTPUT_VARIABLE definitions)
  set_source_files_properties("${PUONE_KERNELS_DIR}/variants.cpp" PROPERTIES
    COMPILE_DEFINITIONS "${definitions}")
  foreach(level IN LISTS levels)
    set(objects ${target}_kernels_${level})
    set(options)
    if(NOT level STREQUAL baseline)
      set(options OPTIONS -march=x86-64-${level} -mprefer-vector-width=512)
    endif()
    puone_add_kernels(NAME ${objects}
      SOURCES ${sources} DEFINITIONS PUONE_ISA=${level} ${options})
    target_link_libraries(${target} PRIVATE ${objects})
  endforeach()
endfunction()

function(puone_add_module_dialect target flavour)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/module_dialect_${flavour}.cpp")
  set(script "${PUONE_KERNELS_DIR}/amalgamate.py")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${Python_EXECUTABLE}" "${script}" ${flavour} "${source}" --depfile "${source}.d" ${ARGN}
      --include "${PUONE_KERNELS_DIR}/.." --include "${PUONE_GENERATED_DIR}"
    DEPENDS "${script}" DEPFILE "${source}.d" VERBATIM)
  target_sources(${target} PRIVATE "${source}")
endfunction()
