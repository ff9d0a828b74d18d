# SPDX-License-Identifier: BSD-3-Clause
# PUONE_VALIDATION_SOURCES: the validation layer, for each library that validates to compile with its
# own options. One of them has to hide symbols.
set(PUONE_VALIDATION_SOURCES
  collective.cpp
  collective_checks.cpp
  device.cpp
  dlpack.cpp
  driver.cpp
  event.cpp
  extensions.cpp
  fault.cpp
  graph.cpp
  ipc.cpp
  kernel.cpp
  memory.cpp
  memory_checks.cpp
  module.cpp
  refusals.cpp
  stream.cpp
  table.cpp
  trace.cpp)
list(TRANSFORM PUONE_VALIDATION_SOURCES PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
