// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/device.h"

#include <string>

#include "bindings/bindings.h"
#include "runtime/stream.h"

namespace py = pybind11;

namespace puone {

void bindDevice(py::module_& m) {
  py::class_<puone_device_properties>(
      m, "DeviceProperties", "What a device is. Values are the driver's and never change.")
      .def_property_readonly(
          "name",
          [](const puone_device_properties& self) { return std::string(self.name); },
          "Name, for people.")
      .def_readonly("total_memory", &puone_device_properties::total_memory, "Memory in bytes.")
      .def_readonly(
          "major",
          &puone_device_properties::major,
          "Major compute capability; 0 where the idea has no meaning.")
      .def_readonly("minor", &puone_device_properties::minor, "Minor compute capability.")
      .def_readonly(
          "multi_processor_count",
          &puone_device_properties::multiprocessor_count,
          "Number of units that run blocks in parallel; at least 1.")
      .def_readonly(
          "warp_size",
          &puone_device_properties::warp_size,
          "Number of threads that run in lock step; 1 where there are none.")
      .def("__repr__", [](const puone_device_properties& self) {
        return "DeviceProperties(name='" + std::string(self.name) +
               "', major=" + std::to_string(self.major) + ", minor=" + std::to_string(self.minor) +
               ", total_memory=" + std::to_string(self.total_memory / (1024 * 1024)) +
               "MB, multi_processor_count=" + std::to_string(self.multiprocessor_count) + ")";
      });
  m.def("device_count", [] { return static_cast<int>(deviceCount()); });
  m.def("current_device", [] { return static_cast<int>(currentDevice()); });
  m.def("set_device", &setCurrentDevice, py::arg("device"));
  m.def(
      "exchange_device",
      [](c10::DeviceIndex device) { return static_cast<int>(exchangeDevice(device)); },
      py::arg("device"));
  m.def(
      "maybe_exchange_device",
      [](c10::DeviceIndex device) { return static_cast<int>(maybeExchangeDevice(device)); },
      py::arg("device"));
  m.def("device_properties", &deviceProperties, py::arg("device"));
  m.def("can_access_peer", &canAccessPeer, py::arg("device"), py::arg("peer"));
  m.def(
      "synchronize",
      &synchronizeDevice,
      py::arg("device"),
      py::call_guard<py::gil_scoped_release>());
  m.def("has_primary_context", &hasPrimaryContext, py::arg("device"));
}

} // namespace puone
