# SPDX-License-Identifier: BSD-3-Clause
# Generates the sources that follow from the kernel contract (kernels.yaml) into
# ${PUONE_GENERATED_DIR}, when the project is configured and again when the contract changes.
set(PUONE_GENERATED_DIR "${CMAKE_BINARY_DIR}/generated")
include_guard(GLOBAL)
if(NOT DEFINED Python_EXECUTABLE) # drivers alone
  find_package(Python REQUIRED COMPONENTS Interpreter)
endif()
set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_CURRENT_LIST_DIR}/kernels.yaml" "${CMAKE_CURRENT_LIST_DIR}/generate_kernels.py"
  "${CMAKE_CURRENT_LIST_DIR}/kernel_accesses.py"
  "${CMAKE_CURRENT_LIST_DIR}/../definitions.py")
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/generate_kernels.py"
    "${PUONE_GENERATED_DIR}"
  COMMAND_ERROR_IS_FATAL ANY)
