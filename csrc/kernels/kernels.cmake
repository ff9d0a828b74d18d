# SPDX-License-Identifier: BSD-3-Clause
# puone_add_host_kernels(<target>): the device kernels compiled for the host, once per instruction
# set, and linked into <target>. A driver of a real device compiles the same sources its own way.
#
# PUONE_KERNEL_LEVELS=native builds the best one of this processor only, a third of the work, and
# `baseline` the one of every processor; PUONE_KERNELS=basic builds what a driver by itself is tested
# with: copies, fills and delays.
set(PUONE_KERNELS_DIR "${CMAKE_CURRENT_LIST_DIR}")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(PUONE_KERNEL_LEVELS baseline v3 v4 CACHE STRING "Instruction sets of the host kernels")
else()
  set(PUONE_KERNEL_LEVELS baseline CACHE STRING "Instruction sets of the host kernels")
endif()
set(PUONE_KERNELS all CACHE STRING "Which kernels: all, or basic")
set(PUONE_BASIC_KERNEL_SOURCES cast.cpp copy.cpp delay.cpp fill.cpp registry.cpp)
# What both flavours have (launch.h), and what only the host's has.
set(PUONE_KERNEL_SOURCES
  activation.cpp
  amp.cpp
  arithmetic.cpp
  batch_norm.cpp
  binary.cpp
  cast.cpp
  compare.cpp
  complex.cpp
  convolution.cpp
  copy.cpp
  cumulative.cpp
  delay.cpp
  dot.cpp
  embedding.cpp
  extremes.cpp
  fill.cpp
  foreach.cpp
  fused_optimizer.cpp
  gemm.cpp
  group_norm.cpp
  indexing.cpp
  loss.cpp
  masked.cpp
  nll_loss.cpp
  order.cpp
  pool.cpp
  random.cpp
  reduction.cpp
  registry.cpp
  resample.cpp
  sampling.cpp
  search.cpp
  sequence.cpp
  shape.cpp
  softmax.cpp
  special.cpp
  ternary.cpp
  unary_exponential.cpp
  unary_simple.cpp
  unary_trigonometric.cpp
)
set(PUONE_HOST_KERNEL_SOURCES host/elementwise.cpp host/gemm_tile.cpp)

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

function(puone_add_host_kernels target)
  target_sources(${target} PRIVATE "${PUONE_KERNELS_DIR}/variants.cpp")
  set(sources ${PUONE_KERNEL_SOURCES} ${PUONE_HOST_KERNEL_SOURCES})
  if(PUONE_KERNELS STREQUAL "basic")
    set(sources ${PUONE_BASIC_KERNEL_SOURCES})
  endif()
  list(TRANSFORM sources PREPEND "${PUONE_KERNELS_DIR}/")
  # Random numbers are the same on every driver and processor, to the last bit.
  set_source_files_properties(
    "${PUONE_KERNELS_DIR}/random.cpp" "${PUONE_KERNELS_DIR}/sampling.cpp"
    PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
  set(levels ${PUONE_KERNEL_LEVELS})
  if(levels STREQUAL "native")
    puone_native_level(levels)
  endif()
  # Only this source knows the levels: another choice of them compiles no other one again.
  list(TRANSFORM levels PREPEND PUONE_KERNELS_ OUTPUT_VARIABLE definitions)
  set_source_files_properties("${PUONE_KERNELS_DIR}/variants.cpp" PROPERTIES
    COMPILE_DEFINITIONS "${definitions}")
  foreach(level IN LISTS levels)
    set(objects ${target}_kernels_${level})
    add_library(${objects} OBJECT ${sources})
    target_link_libraries(${objects} PRIVATE puone_driver_options)
    target_compile_definitions(${objects} PRIVATE
      PUONE_ISA=${level} $<$<STREQUAL:${PUONE_KERNELS},basic>:PUONE_BASIC_KERNELS>)
    # Kernels touch no errno and no floating-point traps; knowing that, the compiler can vectorise.
    target_compile_options(${objects} PRIVATE -fno-math-errno -fno-trapping-math)
    if(NOT PUONE_SANITIZE)
      target_compile_options(${objects} PRIVATE -O3)
    endif()
    if(NOT level STREQUAL baseline)
      target_compile_options(${objects} PRIVATE -march=x86-64-${level} -mprefer-vector-width=512)
    endif()
    target_link_libraries(${target} PRIVATE ${objects})
  endforeach()
endfunction()
