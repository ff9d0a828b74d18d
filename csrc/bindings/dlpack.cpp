// SPDX-License-Identifier: BSD-3-Clause
// DLPack capsules with the device type that other libraries use for the driver's memory. torch
// writes and reads the capsules, but labels PrivateUse1 devices kDLExtDev, which no other library
// accepts; this file changes that label, and orders the streams of other libraries.
#include <ATen/dlpack.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cstdint>

#include "bindings/bindings.h"
#include "hal/hal.h"
#include "runtime/device.h"
#include "runtime/driver.h"
#include "runtime/event.h"
#include "runtime/extension.h"
#include "runtime/stream.h"

namespace py = pybind11;

namespace puone {
namespace {

constexpr const char* kVersioned = "dltensor_versioned";
constexpr const char* kUnversioned = "dltensor";

const puone_dlpack_api& dlpackApi() {
  return requireExtension<puone_dlpack_api>(PUONE_DLPACK_EXTENSION, PUONE_DLPACK_VERSION);
}

int32_t deviceId(const puone_dlpack_api& api, int32_t device) {
  int32_t id = 0;
  PUONE_CHECK_STATUS(api.device_id(device, &id), "device_id");
  return id;
}

py::tuple dlpackDevice(int32_t device) {
  const auto& api = dlpackApi();
  return py::make_tuple(api.device_type, deviceId(api, device));
}

int32_t dlpackIndex(int32_t device_type, int32_t device_id) {
  const auto& api = dlpackApi();
  for (int32_t device = 0; device < deviceCount() && device_type == api.device_type; ++device) {
    if (deviceId(api, device) == device_id) {
      return device;
    }
  }
  throw py::buffer_error(
      c10::str(
          "the memory is of DLPack device (",
          device_type,
          ", ",
          device_id,
          "), which is no device of driver ",
          driverState().name));
}

template <typename Managed>
Managed* managedBy(py::handle capsule, const char* name) {
  return static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
}

// The tensor in a capsule that was not consumed yet. Refuses unknown major versions, of which only
// the deleter is defined.
DLTensor& tensorOf(py::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), kUnversioned)) {
    return managedBy<DLManagedTensor>(capsule, kUnversioned)->dl_tensor;
  }
  if (!PyCapsule_IsValid(capsule.ptr(), kVersioned)) {
    throw py::value_error("not a DLPack capsule, or one that was consumed before");
  }
  auto* managed = managedBy<DLManagedTensorVersioned>(capsule, kVersioned);
  if (managed->version.major > DLPACK_MAJOR_VERSION) {
    throw py::buffer_error(
        c10::str("the capsule is of DLPack ", managed->version.major, ", which is not known yet"));
  }
  return managed->dl_tensor;
}

void relabelExport(py::handle capsule, int32_t device) {
  const auto& api = dlpackApi();
  tensorOf(capsule).device = {static_cast<DLDeviceType>(api.device_type), deviceId(api, device)};
}

// Kernels will get the address, so the driver must know it.
void relabelImport(py::handle capsule, int32_t device) {
  DLTensor& tensor = tensorOf(capsule);
  // torch reads only the address.
  char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  const auto where = pointerAttributes(data);
  const bool empty =
      std::any_of(tensor.shape, tensor.shape + tensor.ndim, [](int64_t size) { return size == 0; });
  if (!empty && (where.kind != PUONE_MEMORY_DEVICE || where.device != device)) {
    throw py::buffer_error(
        c10::str(
            "the memory at ",
            static_cast<void*>(data),
            " is not of puone:",
            device,
            " to driver ",
            driverState().name));
  }
  tensor.data = data;
  tensor.byte_offset = 0;
  tensor.device = {kDLExtDev, device};
}

uintptr_t nativeStream(c10::DeviceIndex device) {
  void* native = nullptr;
  PUONE_CHECK(hal().stream_native_handle(getCurrentStream(device).handle(), &native));
  return reinterpret_cast<uintptr_t>(native);
}

void nativeStreamWaits(uintptr_t native_stream, c10::DeviceIndex device) {
  const auto& api = dlpackApi();
  Event queued;
  queued.record(getCurrentStream(device));
  PUONE_CHECK_STATUS(
      api.native_stream_wait_event(reinterpret_cast<void*>(native_stream), queued.handle()),
      "native_stream_wait_event");
}

} // namespace

void bindDlpack(py::module_& m) {
  m.def("dlpack_device", &dlpackDevice, py::arg("device"));
  m.def("dlpack_index", &dlpackIndex, py::arg("device_type"), py::arg("device_id"));
  m.def("dlpack_relabel_export", &relabelExport, py::arg("capsule"), py::arg("device"));
  m.def("dlpack_relabel_import", &relabelImport, py::arg("capsule"), py::arg("device"));
  m.def("native_stream", &nativeStream, py::arg("device"));
  m.def("native_default_stream", [] {
    return reinterpret_cast<uintptr_t>(dlpackApi().default_stream);
  });
  m.def("native_stream_waits", &nativeStreamWaits, py::arg("native_stream"), py::arg("device"));
}

} // namespace puone
