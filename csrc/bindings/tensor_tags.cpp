// SPDX-License-Identifier: BSD-3-Clause
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings/bindings.h"
#include "runtime/tensor_tags.h"

namespace py = pybind11;

namespace puone {

void bindTensorTags(py::module_& m) {
  m.def("tensor_tags", &tensorTags, py::arg("tensor"));
  m.def("set_tensor_tags", &setTensorTags, py::arg("tensor"), py::arg("tags"));
}

} // namespace puone
