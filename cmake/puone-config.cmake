# SPDX-License-Identifier: BSD-3-Clause
# find_package(puone): everything to build a backend or a driver with. The project finds Python first.
#
#   find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
#   execute_process(COMMAND ${Python_EXECUTABLE} -m torch_puone.cmake_dir
#     OUTPUT_VARIABLE puone_DIR OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
#   find_package(puone CONFIG REQUIRED)
#   puone_add_driver(NAME mychip SOURCES driver.c)
#
# torch.cmake makes the imported targets; driver.cmake and backend.cmake say what their functions take.
include_guard(GLOBAL)
include("${CMAKE_CURRENT_LIST_DIR}/torch.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/backend.cmake")
