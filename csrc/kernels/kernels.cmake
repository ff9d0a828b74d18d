# SPDX-License-Identifier: BSD-3-Clause
# puone_add_host_kernels(<target>): the device kernels compiled for the host, once per instruction
# set, and linked into <target>. A driver of a real device compiles the same sources its own way.
#
# PUONE_KERNEL_LEVELS=baseline builds faster, for where speed does not matter; PUONE_KERNELS=basic
# builds what a driver by itself is tested with: copies, fills and delays.
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
  foreach(level IN LISTS PUONE_KERNEL_LEVELS)
    target_compile_definitions(${target} PRIVATE PUONE_KERNELS_${level})
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
