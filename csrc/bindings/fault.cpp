// SPDX-License-Identifier: BSD-3-Clause
// The "fault" extension of the HAL, for tests of error handling.
#include "bindings/bindings.h"
#include "hal/hal.h"
#include "runtime/driver.h"
#include "runtime/extension.h"

namespace py = pybind11;

namespace puone {
namespace {

const puone_fault_api& faultApi() {
  return requireExtension<puone_fault_api>(PUONE_FAULT_EXTENSION, PUONE_FAULT_VERSION);
}

} // namespace

void bindFault(py::module_& m) {
  m.def(
      "fault_out_of_memory_at",
      [](uint64_t nth) {
        PUONE_CHECK_STATUS(faultApi().out_of_memory_at(nth), "out_of_memory_at");
      },
      py::arg("nth"));
  m.def(
      "fault_kernel_error_at",
      [](uint64_t nth) { PUONE_CHECK_STATUS(faultApi().kernel_error_at(nth), "kernel_error_at"); },
      py::arg("nth"));
  m.def(
      "fault_device_lost",
      [](int32_t device) { PUONE_CHECK_STATUS(faultApi().device_lost(device), "device_lost"); },
      py::arg("device"));
  m.def(
      "fault_latency_ns",
      [](uint64_t ns) { PUONE_CHECK_STATUS(faultApi().latency_ns(ns), "latency_ns"); },
      py::arg("ns"));
  m.def("fault_reset", [] { PUONE_CHECK_STATUS(faultApi().reset(), "reset"); });
}

} // namespace puone
