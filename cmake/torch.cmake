# SPDX-License-Identifier: BSD-3-Clause
# Imported targets for the torch that ${Python_EXECUTABLE} would import:
#   torch::c10     torch::torch_cpu     torch::torch_python
# find_package(Torch) is not used: it drags in every dependency of torch's own build (CUDA, MKL, ...)
# and fails where they are absent, although a backend needs only headers and three libraries.
# torch itself is not imported here (that would autoload backends); its directory is enough.

execute_process(
  COMMAND "${Python_EXECUTABLE}" -c
          "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
  OUTPUT_VARIABLE TORCH_DIR
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT TORCH_DIR)
  message(FATAL_ERROR "torch is not installed for ${Python_EXECUTABLE}. Install it first "
                      "(pip install torch), then build with --no-build-isolation.")
endif()

file(READ "${TORCH_DIR}/version.py" torch_version_py)
# Another torch in its place is another configuration.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${TORCH_DIR}/version.py")
string(REGEX MATCH "git_version = '([^']*)'" _ "${torch_version_py}")
set(TORCH_GIT_VERSION "${CMAKE_MATCH_1}")
string(REGEX MATCH "__version__ = '(([0-9]+)\\.([0-9]+)[^']*)'" _ "${torch_version_py}")
set(TORCH_VERSION "${CMAKE_MATCH_1}")
set(TORCH_VERSION_MAJOR_MINOR "${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
# reference_backend/build_backend.py reads it, too.
set(OLDEST_TORCH 2.11)
if(TORCH_VERSION_MAJOR_MINOR VERSION_LESS OLDEST_TORCH)
  message(FATAL_ERROR "torch ${TORCH_VERSION_MAJOR_MINOR} in ${TORCH_DIR} is too old: "
                      "${OLDEST_TORCH} or newer is needed.")
endif()
message(STATUS "torch ${TORCH_VERSION_MAJOR_MINOR}: ${TORCH_DIR}")

foreach(name c10 torch_cpu torch_python)
  set(library "${TORCH_DIR}/lib/lib${name}${CMAKE_SHARED_LIBRARY_SUFFIX}")
  if(NOT EXISTS "${library}")
    message(FATAL_ERROR "${library} is missing: this torch installation is incomplete.")
  endif()
  add_library(torch::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(torch::${name} PROPERTIES IMPORTED_LOCATION "${library}")
  # The second directory holds torch/version.h.
  target_include_directories(torch::${name} SYSTEM INTERFACE
    "${TORCH_DIR}/include" "${TORCH_DIR}/include/torch/csrc/api/include")
endforeach()
