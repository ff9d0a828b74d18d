# SPDX-License-Identifier: BSD-3-Clause
# Generates the registrations of operators.yaml into ${PUONE_GENERATED_DIR}, when the project is
# configured and again when the table, torch or the list of sources changes.
# Sets operator_sources: the sources of csrc/aten that PUONE_OPERATORS asks for.
set(PUONE_OPERATORS all CACHE STRING "the operators with device kernels: all, or core (about a dozen)")
set_property(CACHE PUONE_OPERATORS PROPERTY STRINGS all core)
file(GLOB operator_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*/*.cpp")
set(PUONE_GENERATED_DIR "${CMAKE_BINARY_DIR}/generated")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_CURRENT_LIST_DIR}/operators.yaml" "${CMAKE_CURRENT_LIST_DIR}/generate_operators.py"
  "${TORCH_DIR}/version.py")
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/generate_operators.py"
    "${PUONE_GENERATED_DIR}" --torch "${TORCH_DIR}" --operators "${PUONE_OPERATORS}"
  OUTPUT_VARIABLE operator_sources OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" operator_sources "${operator_sources}")
list(TRANSFORM operator_sources PREPEND "csrc/aten/")
