// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "bindings/bindings.h"
#include "runtime/device.h"

namespace py = pybind11;

namespace puone {
namespace {

// Sends one task through each of autograd's threads, of which there is one per device. The
// task holds no Python object, so a thread that has finished it never needs the GIL again.
void settleAutograd() {
  for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
    const auto options = at::TensorOptions().device(c10::Device(kDeviceType, index));
    const auto leaf = at::zeros({}, options).requires_grad_();
    torch::autograd::backward({leaf.clone()});
  }
}

} // namespace

void bindAutograd(py::module_& m) {
  m.def("settle_autograd", &settleAutograd, py::call_guard<py::gil_scoped_release>());
}

} // namespace puone
