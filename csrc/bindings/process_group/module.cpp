// SPDX-License-Identifier: BSD-3-Clause
// The extension torch_puone._distributed, which the first process group loads. Its classes are
// derived from those of torch._C._distributed_c10d, so it is compiled with PyTorch's pybind11.
// reference_backend/torch_puone/_distributed.pyi is the documentation.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <string>
#include <utility>

#include "distributed/native.h"
#include "distributed/process_group.h"
#include "distributed/session.h"

namespace py = pybind11;

using puone::distributed::abortSessions;
using puone::distributed::GroupOptions;
using puone::distributed::ProcessGroup;

PYBIND11_MODULE(_distributed, m) {
  py::module_::import("torch.distributed");
  py::class_<GroupOptions, c10::intrusive_ptr<GroupOptions>, c10d::Backend::Options>(
      m,
      "Options",
      "Options of a process group of pccl, for init_process_group and new_group (pg_options=).\n\n"
      "`timeout` bounds each call of the group. `transport` is \"native\", \"staged\", or \"\" "
      "for\n"
      "native where all ranks can and PUONE_PCCL does not say; anything else raises ValueError.")
      .def(
          py::init([](std::chrono::milliseconds timeout, std::string transport) {
            puone::distributed::transportOf(transport); // says so if it is none
            auto options = c10::make_intrusive<GroupOptions>(timeout);
            options->transport = std::move(transport);
            return options;
          }),
          py::arg("timeout"),
          py::arg("transport") = "")
      .def_readonly("transport", &GroupOptions::transport, "The transport that was asked for.")
      .def(
          "__copy__",
          [](const GroupOptions& self) { return c10::make_intrusive<GroupOptions>(self); })
      .def("__deepcopy__", [](const GroupOptions& self, const py::dict&) {
        return c10::make_intrusive<GroupOptions>(self);
      });
  py::class_<ProcessGroup, c10::intrusive_ptr<ProcessGroup>, c10d::Backend>(m, "ProcessGroup")
      .def(
          py::init<c10::intrusive_ptr<c10d::Backend>, int, int, c10::intrusive_ptr<GroupOptions>>(),
          py::arg("host"),
          py::arg("rank"),
          py::arg("size"),
          py::arg("options"),
          py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("options", &ProcessGroup::options)
      .def("pending", &ProcessGroup::pending)
      .def_property_readonly("transport", &ProcessGroup::transport)
      .def_property_readonly("why_staged", &ProcessGroup::whyStaged)
      .def(
          "perform_nocolor_split",
          [](const ProcessGroup&, const c10::Device&) {},
          py::arg("device"));
  m.def("abort_all", &abortSessions, py::arg("grace"), py::call_guard<py::gil_scoped_release>());
}
