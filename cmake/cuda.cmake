# SPDX-License-Identifier: BSD-3-Clause
# The CUDA toolkit: the nvcc that CUDACXX names or that is on PATH, else the wheels of
# requirements/cuda.txt that `make` installed.
# Sets, each to something false where there is none:
#   PUONE_NVCC              the compiler
#   PUONE_CUDA_INCLUDE_DIR  the headers beside it
#   PUONE_CUDART_STATIC     libcudart_static.a, for linking by another compiler; it needs dl, rt and
#                           threads
get_filename_component(puone_cudacxx_dir "$ENV{CUDACXX}" DIRECTORY)
find_program(PUONE_NVCC nvcc
  HINTS "${puone_cudacxx_dir}"
  PATHS "${CMAKE_CURRENT_LIST_DIR}/../build/cuda-toolkit/nvidia/cu13/bin"
  DOC "CUDA's compiler")
if(PUONE_NVCC)
  # It may be a script or a link: only it knows where it is at home.
  execute_process(
    COMMAND "${PUONE_NVCC}" --dryrun -x cu /dev/null
    OUTPUT_QUIET ERROR_VARIABLE puone_nvcc_says)
  if(puone_nvcc_says MATCHES "#\\$ TOP=([^\n]+)")
    get_filename_component(puone_cuda_home "${CMAKE_MATCH_1}" ABSOLUTE)
  endif()
  find_path(PUONE_CUDA_INCLUDE_DIR cuda_runtime_api.h
    PATHS "${puone_cuda_home}/include" NO_DEFAULT_PATH)
  find_library(PUONE_CUDART_STATIC libcudart_static.a
    PATHS "${puone_cuda_home}" PATH_SUFFIXES lib64 lib NO_DEFAULT_PATH)
endif()
