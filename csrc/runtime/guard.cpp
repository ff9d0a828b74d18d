// SPDX-License-Identifier: BSD-3-Clause
// DeviceGuardImplInterface: how PyTorch's generic code (guards, torch.Stream, torch.Event,
// autograd) reaches devices, streams and events.
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "runtime/capture.h"
#include "runtime/deferred_error.h"
#include "runtime/device.h"
#include "runtime/device_allocator.h"
#include "runtime/driver.h"
#include "runtime/event.h"
#include "runtime/stream.h"

namespace puone {
namespace {

// The types that can be filled, converted and compared. Those of float8 are for storage, as on
// every device. Tensors of the others (bits, integers of 1 to 7 bits, float4, quantized) can only
// be moved.
c10::DeviceCapability supportedDtypes() {
  c10::DeviceCapability capability;
  capability.capability_data.capability_bits = 0;
  auto& types = capability.capability_data.supported_scalar_types;
  types.has_Bool = true;
  types.has_Byte = types.has_UInt16 = types.has_UInt32 = types.has_UInt64 = true;
  types.has_Char = types.has_Short = types.has_Int = types.has_Long = true;
  types.has_Half = types.has_BFloat16 = types.has_Float = types.has_Double = true;
  types.has_ComplexHalf = types.has_ComplexFloat = types.has_ComplexDouble = true;
  types.has_Float8_e4m3fn = types.has_Float8_e4m3fnuz = types.has_Float8_e5m2 = true;
  types.has_Float8_e5m2fnuz = types.has_Float8_e8m0fnu = true;
  return capability;
}

puone_event asEvent(void* event) {
  return static_cast<puone_event>(event);
}

struct GuardImpl final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kDeviceType;
  }

  // ---- device ----

  c10::Device exchangeDevice(c10::Device device) const override {
    // The destructor of a future calls it, also after shutdown and in a forked child.
    if (driverIsDown() || inBadFork()) return device;
    return {kDeviceType, maybeExchangeDevice(device.index())};
  }

  c10::Device getDevice() const override {
    return {kDeviceType, currentDevice()};
  }

  void setDevice(c10::Device device) const override {
    if (device.has_index()) {
      setCurrentDevice(device.index());
    }
  }

  void uncheckedSetDevice(c10::Device device) const noexcept override {
    // Runs in destructors, also in those of static objects after shutdown.
    if (device.has_index()) {
      restoreCurrentDevice(device.index());
    }
  }

  c10::DeviceIndex deviceCount() const noexcept override {
    return puone::deviceCount();
  }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    return supportedDtypes();
  }

  void synchronizeDevice(const c10::DeviceIndex device) const override {
    puone::synchronizeDevice(resolveDevice(device));
  }

  // ---- stream ----

  // [quote: streams]
  c10::Stream getStream(c10::Device device) const override {
    return getCurrentStream(device.index()).unwrap();
  }

  c10::Stream getDefaultStream(c10::Device device) const override {
    return puone::getDefaultStream(device.index()).unwrap();
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return getStreamFromPool(high_priority ? -1 : 0, device.index()).unwrap();
  }

  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return getStreamFromPool(priority, device.index()).unwrap();
  }

  c10::Stream exchangeStream(c10::Stream stream) const override {
    const auto previous = getCurrentStream(stream.device_index());
    setCurrentStream(Stream(stream));
    return previous.unwrap();
  }
  // [end: streams]

  bool queryStream(const c10::Stream& stream) const override {
    return Stream(stream).query();
  }

  void synchronizeStream(const c10::Stream& stream) const override {
    Stream(stream).synchronize();
  }

  // Not marked `override`: torch has it since 2.13.
  bool isStreamCapturing(const c10::Stream& stream) const {
    return isCapturing(Stream(stream));
  }

  void* getStreamNativeHandle(const c10::Stream stream) const override {
    void* handle = nullptr;
    PUONE_CHECK(hal().stream_native_handle(Stream(stream).handle(), &handle));
    return handle;
  }

  void recordDataPtrOnStream(const c10::DataPtr& ptr, const c10::Stream& stream) const override {
    deviceAllocator().recordStream(ptr, stream);
  }

  // ---- event: `void*` is the driver's handle, owned by PyTorch's c10::Event ----

  void record(
      void** event,
      const c10::Stream& stream,
      const c10::DeviceIndex device,
      const c10::EventFlag flag) const override {
    TORCH_CHECK(
        device == -1 || device == stream.device_index(),
        "event of puone:",
        static_cast<int>(device),
        " cannot be recorded on a stream of ",
        stream.device());
    if (*event == nullptr) {
      puone_event created = nullptr;
      PUONE_CHECK(hal().event_create(stream.device_index(), eventFlags(flag), &created));
      *event = created;
    }
    PUONE_CHECK(hal().event_record(asEvent(*event), Stream(stream).handle()));
  }

  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) {
      PUONE_CHECK(hal().stream_wait_event(Stream(stream).handle(), asEvent(event)));
    }
  }

  bool queryEvent(void* event) const override {
    return event == nullptr || isDone(hal().event_query(asEvent(event)), "event_query");
  }

  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      PUONE_CHECK(hal().event_synchronize(asEvent(event)));
      raiseDeferredError(-1); // a c10::Event does not say of which device it is
    }
  }

  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(
        start != nullptr && end != nullptr,
        "Both events must be recorded before calculating elapsed time.");
    float milliseconds = 0;
    const puone_status status = hal().event_elapsed_ms(asEvent(start), asEvent(end), &milliseconds);
    TORCH_CHECK(
        status != PUONE_NOT_READY,
        "Both events must be completed before calculating elapsed time.");
    PUONE_CHECK_STATUS(status, "event_elapsed_ms");
    return milliseconds;
  }

  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event == nullptr) {
      return;
    }
    if (const auto* api = halOrNull()) {
      api->event_destroy(asEvent(event));
    }
  }

 private:
  static uint32_t eventFlags(c10::EventFlag flag) {
    // No switch: kBlockingEvent is not among the enumerators.
    if (flag == c10::EventFlag::PYTORCH_DEFAULT) return PUONE_EVENT_DEFAULT;
    if (flag == c10::EventFlag::BACKEND_DEFAULT) {
      return PUONE_EVENT_TIMING | PUONE_EVENT_BLOCKING_SYNC;
    }
    TORCH_CHECK(flag == kBlockingEvent, "puone: unknown event flag");
    return PUONE_EVENT_BLOCKING_SYNC;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl)

} // namespace
} // namespace puone
