// SPDX-License-Identifier: BSD-3-Clause
#include <torch/csrc/utils/pybind.h>

#include "bindings/bindings.h"
#include "distributed/process_group.h"
#include "distributed/session.h"

namespace py = pybind11;

namespace puone {

using distributed::Options;
using distributed::ProcessGroup;

void bindDistributed(py::module_& m) {
  m.def(
      "abort_process_groups",
      [](int64_t grace_ms) { distributed::abortSessions(std::chrono::milliseconds(grace_ms)); },
      py::arg("grace_ms"),
      py::call_guard<py::gil_scoped_release>());
  // The base classes are Python's of torch._C._distributed_c10d; a PyTorch may be built without.
  const auto torch_C = py::module_::import("torch._C");
  if (!py::hasattr(torch_C, "_c10d_init")) return;
  py::module_::import("torch.distributed");
  py::class_<Options, c10::intrusive_ptr<Options>, c10d::Backend::Options>(m, "ProcessGroupOptions")
      .def(py::init<std::chrono::milliseconds>(), py::arg("timeout"))
      .def("__copy__", [](const Options& self) { return c10::make_intrusive<Options>(self); })
      .def("__deepcopy__", [](const Options& self, const py::dict&) {
        return c10::make_intrusive<Options>(self);
      });
  py::class_<ProcessGroup, c10::intrusive_ptr<ProcessGroup>, c10d::Backend>(m, "ProcessGroup")
      .def(
          py::init(&ProcessGroup::create),
          py::arg("host"),
          py::arg("rank"),
          py::arg("size"),
          py::arg("options"))
      .def_property_readonly(
          "options",
          [](ProcessGroup& self) {
            return c10::static_intrusive_pointer_cast<Options>(self.getBackendOptions());
          })
      .def("pending", &ProcessGroup::pending);
}

} // namespace puone
