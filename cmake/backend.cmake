# SPDX-License-Identifier: BSD-3-Clause
# Backends: what PyTorch loads for a device.
#
#   puone_add_backend(NAME <name> SOURCES <file>... [TARGET <target>] [DIRECTORY <directory>]
#                     [KERNELS <target>...] [LIBRARIES <target>...] [DRIVER <name>...])
#       libtorch_<name>.so, the target torch_<name>: the device without any Python. KERNELS are object
#       libraries of puone_add_kernels() that it calls itself. DRIVER names the drivers of
#       puone_add_driver() that csrc/runtime/driver_choice.cpp tries, in this order, where the
#       environment names none. TARGET and DIRECTORY are for a second build of the same library.
#   puone_add_extension(NAME <module> BACKEND <target> SOURCES <file>... [DERIVES_FROM_TORCH])
#       a Python extension over the backend, in PUONE_EXTENSION_DIR. DERIVES_FROM_TORCH is for one
#       whose classes are derived from classes of PyTorch's own extension.
#
# Both need the targets of torch.cmake; the second, Development.Module of find_package(Python).
include_guard(GLOBAL)
include("${CMAKE_CURRENT_LIST_DIR}/driver.cmake")

# PyTorch's and pybind11's headers and templates cost more than the sources, so several of these are
# compiled as one: a full build takes less than half of the time. While you work on them,
# -DCMAKE_UNITY_BUILD=OFF compiles each by itself.
if(DEFINED CMAKE_UNITY_BUILD)
  set(PUONE_UNITY)
else()
  set(PUONE_UNITY UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
endif()

function(puone_add_backend)
  cmake_parse_arguments(PARSE_ARGV 0 backend ""
    "NAME;TARGET;DIRECTORY" "SOURCES;KERNELS;LIBRARIES;DRIVER")
  puone_check_arguments(puone_add_backend backend NAME SOURCES)
  if(NOT DEFINED backend_TARGET)
    set(backend_TARGET torch_${backend_NAME})
  endif()
  if(NOT DEFINED backend_DIRECTORY)
    set(backend_DIRECTORY "${PUONE_LIB_DIR}")
  endif()
  set(target ${backend_TARGET})
  add_library(${target} SHARED ${backend_SOURCES})
  target_link_libraries(${target} PUBLIC
    ${backend_LIBRARIES} torch::c10 torch::torch_cpu PRIVATE ${backend_KERNELS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  # It hands work to kernels, which have -O3 of their own; here -O3 takes a tenth longer to compile.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
  # Its functions are exported, and nobody replaces them: calls among them may be inlined.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
  target_link_options(${target} PRIVATE -Wl,-Bsymbolic-functions)
  # Two thirds of the time to compile an operator's source are PyTorch's headers.
  target_compile_definitions(${target} PRIVATE AT_PER_OPERATOR_HEADERS)
  target_precompile_headers(${target} PRIVATE
    <ATen/TensorIterator.h> <ATen/core/Tensor.h> <torch/library.h>)
  set_target_properties(${target} PROPERTIES ${PUONE_UNITY}
    OUTPUT_NAME torch_${backend_NAME} LIBRARY_OUTPUT_DIRECTORY "${backend_DIRECTORY}"
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET default)
  puone_name_drivers("${backend_SOURCES}" "${backend_DRIVER}")
endfunction()

# Tells the runtime's choice of a driver, where it is among the sources, which ones there are and which
# to try. Of other sources nothing changes, so another driver compiles one file again.
function(puone_name_drivers sources preferred)
  list(FILTER sources INCLUDE REGEX "csrc/runtime/driver_choice\\.cpp$")
  if(NOT sources)
    return()
  endif()
  get_property(names GLOBAL PROPERTY PUONE_DRIVERS)
  list(JOIN names "," names)
  list(JOIN preferred "," preferred)
  set_property(SOURCE ${sources} PROPERTY COMPILE_DEFINITIONS
    "PUONE_DRIVER_NAMES=\"${names}\"" "PUONE_PREFERRED_DRIVERS=\"${preferred}\"")
endfunction()

function(puone_add_extension)
  cmake_parse_arguments(PARSE_ARGV 0 extension "DERIVES_FROM_TORCH" "NAME;BACKEND" "SOURCES")
  puone_check_arguments(puone_add_extension extension NAME BACKEND SOURCES)
  set(target ${extension_NAME})
  set(unity)
  if(extension_DERIVES_FROM_TORCH)
    # Only the pybind11 that PyTorch was compiled with sees its classes: the copy beside its headers.
    python_add_library(${target} MODULE WITH_SOABI ${extension_SOURCES})
  else()
    puone_find_pybind11()
    pybind11_add_module(${target} MODULE NO_EXTRAS ${extension_SOURCES})
    set(unity ${PUONE_UNITY})
  endif()
  target_link_libraries(${target} PRIVATE ${extension_BACKEND} torch::torch_python)
  # Nothing in it is called per operator, and pybind11's templates take a third less time so.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  set_target_properties(${target} PROPERTIES ${unity}
    LIBRARY_OUTPUT_DIRECTORY "${PUONE_EXTENSION_DIR}" INSTALL_RPATH "$ORIGIN/lib")
endfunction()

# The pybind11 of the Python that is built for.
macro(puone_find_pybind11)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
    OUTPUT_VARIABLE pybind11_DIR
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  find_package(pybind11 CONFIG REQUIRED)
endmacro()
