# SPDX-License-Identifier: BSD-3-Clause
# Generates the registrations of operators.yaml into ${PUONE_GENERATED_DIR}, when the project is
# configured and again when the table, torch or the list of sources changes. Sets
#   operator_sources        the sources of csrc/aten that PUONE_OPERATORS asks for
#   core_operator_sources   those of PUONE_OPERATORS=core
set(PUONE_OPERATORS all CACHE STRING
  "operators with device kernels: all, or core (a few; all others run on the CPU)")
set_property(CACHE PUONE_OPERATORS PROPERTY STRINGS all core)
if(NOT PUONE_OPERATORS MATCHES "^(all|core)$")
  message(FATAL_ERROR "PUONE_OPERATORS is ${PUONE_OPERATORS}; it can be all or core")
endif()
set(PUONE_GENERATED_DIR "${CMAKE_BINARY_DIR}/generated")
file(GLOB operator_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*/*.cpp")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_CURRENT_LIST_DIR}/operators.yaml" "${CMAKE_CURRENT_LIST_DIR}/generate_operators.py")
# It also reads what kernels.cmake names (kernels.yaml, definitions.py), and version.py, which
# torch.cmake names.
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/generate_operators.py"
    "${PUONE_GENERATED_DIR}" --torch "${TORCH_DIR}"
  COMMAND_ERROR_IS_FATAL ANY)
include("${PUONE_GENERATED_DIR}/aten/sources.cmake")
set(operator_sources ${${PUONE_OPERATORS}_operator_sources})
