// SPDX-License-Identifier: BSD-3-Clause
#include <torch/csrc/utils/pybind.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "bindings/bindings.h"
#include "runtime/shared_storage.h"

namespace py = pybind11;

namespace puone {
namespace {

template <typename T>
py::bytes toBytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <typename T>
T fromBytes(const py::bytes& bytes) {
  const auto text = static_cast<std::string_view>(bytes);
  if (text.size() != sizeof(T)) {
    throw py::value_error("the message of a tensor is damaged");
  }
  T value;
  std::memcpy(&value, text.data(), sizeof value);
  return value;
}

StorageMessage messageOf(const py::bytes& place, const py::bytes& ticket) {
  return {fromBytes<StoragePlace>(place), fromBytes<ReferenceSlots::Ticket>(ticket)};
}

py::tuple send(const c10::Storage& storage) {
  const StorageMessage message = withoutGil([&] { return sendStorage(storage); });
  return py::make_tuple(toBytes(message.place), toBytes(message.ticket));
}

c10::Storage receive(const py::bytes& place, const py::bytes& ticket) {
  const StorageMessage message = messageOf(place, ticket);
  return withoutGil([&] { return receiveStorage(message); });
}

} // namespace

void bindSharedStorage(py::module_& m) {
  m.def("send_storage", &send, py::arg("storage"));
  m.def("receive_storage", &receive, py::arg("place"), py::arg("ticket"));
  m.def(
      "acknowledge_storage",
      [](const py::bytes& place, const py::bytes& ticket) {
        acknowledge(messageOf(place, ticket));
      },
      py::arg("place"),
      py::arg("ticket"));
  m.def("collect_sent_storages", &collectSentStorages, py::call_guard<py::gil_scoped_release>());
}

} // namespace puone
