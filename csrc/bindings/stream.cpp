// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/stream.h"

#include <torch/csrc/Event.h>

#include "bindings/bindings.h"
#include "runtime/dedicated_stream.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/kernels.h"

namespace py = pybind11;

namespace puone {
namespace {

// What torch.Stream's constructor takes: (stream_id, device_index, device_type).
py::tuple pack(const Stream& stream) {
  const auto packed = stream.unwrap().pack3();
  return py::make_tuple(
      packed.stream_id,
      static_cast<int>(packed.device_index),
      static_cast<int>(packed.device_type));
}

Stream unpack(int64_t id, c10::DeviceIndex index, int64_t type) {
  return Stream(c10::Stream::unpack3(id, index, static_cast<c10::DeviceType>(type)));
}

// torch.Event's constructor takes `blocking` and drops it.
py::object blockingEvent() {
  auto* event = THPEvent_new(kDeviceType, kBlockingEvent);
  if (event == nullptr) {
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(event);
}

void delay(uint64_t ns, c10::DeviceIndex device) {
  kernel::delay.launch({ns}, getCurrentStream(device));
}

} // namespace

void bindStream(py::module_& m) {
  m.def(
      "current_stream",
      [](c10::DeviceIndex device) { return pack(getCurrentStream(device)); },
      py::arg("device"));
  m.def(
      "default_stream",
      [](c10::DeviceIndex device) { return pack(getDefaultStream(device)); },
      py::arg("device"));
  m.def(
      "stream_from_pool",
      [](c10::DeviceIndex device, int priority) {
        return pack(getStreamFromPool(priority, device));
      },
      py::arg("device"),
      py::arg("priority"));
  m.def(
      "take_dedicated_stream",
      [](c10::DeviceIndex device) { return pack(takeDedicatedStream(device)); },
      py::arg("device"));
  m.def(
      "stream_from_external",
      [](uintptr_t native, c10::DeviceIndex device) {
        return pack(getStreamFromExternal(reinterpret_cast<void*>(native), device));
      },
      py::arg("native"),
      py::arg("device"));
  m.def(
      "set_stream",
      [](int64_t id, c10::DeviceIndex index, int64_t type) {
        setCurrentStream(unpack(id, index, type));
      },
      py::arg("stream_id"),
      py::arg("device_index"),
      py::arg("device_type"));
  m.def(
      "stream_priority",
      [](int64_t id, c10::DeviceIndex index, int64_t type) {
        return unpack(id, index, type).priority();
      },
      py::arg("stream_id"),
      py::arg("device_index"),
      py::arg("device_type"));
  m.def("stream_priority_range", [] {
    const auto [least, greatest] = streamPriorityRange();
    return py::make_tuple(least, greatest);
  });
  m.def("blocking_event", &blockingEvent);
  m.def("delay", &delay, py::arg("ns"), py::arg("device"));
}

} // namespace puone
