# SPDX-License-Identifier: BSD-3-Clause
# puone_add_cuda_host(<name>): the driver's host code as an object library. It needs CUDA's headers
# (PUONE_CUDA_INCLUDE_DIRS) and neither nvcc nor a CUDA library.
set(PUONE_CUDA_DRIVER_DIR "${CMAKE_CURRENT_LIST_DIR}")
set(PUONE_CUDA_HOST_SOURCES
  ../common/error.cpp
  ../common/image.cpp
  ../common/image_cache.cpp
  ../common/sha256.cpp
  blas.cpp
  blas_arguments.cpp
  communicator.cpp
  cublas.cpp
  cublaslt.cpp
  cudnn.cpp
  device.cpp
  dnn.cpp
  driver.cpp
  entries.cpp
  event.cpp
  fused_blas.cpp
  device_errors.cpp
  graph.cpp
  host_call.cpp
  launch.cpp
  library.cpp
  memory.cpp
  module.cpp
  native_stream.cpp
  nvrtc.cpp
  nccl.cpp
  probe.cpp
  status.cpp
  trace.cpp)
list(TRANSFORM PUONE_CUDA_HOST_SOURCES PREPEND "${PUONE_CUDA_DRIVER_DIR}/")

function(puone_add_cuda_host name)
  add_library(${name} OBJECT ${PUONE_CUDA_HOST_SOURCES})
  target_link_libraries(${name} PRIVATE puone_driver_options)
  target_compile_definitions(${name} PRIVATE PUONE_SIMT PUONE_ISA=simt)
  target_include_directories(${name} PRIVATE "${PUONE_CUDA_DRIVER_DIR}")
  target_include_directories(${name} SYSTEM PRIVATE ${PUONE_CUDA_INCLUDE_DIRS})
endfunction()
