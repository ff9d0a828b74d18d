// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/generator.h"

#include <torch/csrc/Generator.h>

#include "bindings/bindings.h"

namespace py = pybind11;

namespace puone {

void bindGenerator(py::module_& m) {
  m.def(
      "default_generator",
      [](c10::DeviceIndex device) {
        // The wrapper is cached on the generator, so identity is kept.
        return py::reinterpret_steal<py::object>(THPGenerator_Wrap(defaultGenerator(device)));
      },
      py::arg("device"));
}

} // namespace puone
