// SPDX-License-Identifier: BSD-3-Clause
// The profiler that measures operators with events (torch.autograd.profiler.profile with
// use_kineto=False, and all there is before PyTorch 2.13): time stamps around each operator.
#include <torch/csrc/profiler/stubs/base.h>

#include <utility>

#include "profiler/clock.h"
#include "runtime/driver.h"
#include "runtime/event.h"
#include "runtime/stream.h"

namespace puone::profiler {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

[[noreturn]] void throwNoMarks() {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "puone has no tool that takes marks and ranges from the host. Use torch.profiler.profile and "
      "torch.profiler.record_function instead");
}

class Stubs final : public torch::profiler::impl::ProfilerStubs {
 public:
  void record(
      c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    const Stream stream = getCurrentStream();
    if (device != nullptr) *device = stream.deviceIndex();
    auto recorded = std::make_shared<Event>(PUONE_EVENT_TIMING);
    recorded->record(stream);
    *event = std::move(recorded);
    if (cpu_ns != nullptr) *cpu_ns = nowNs<std::chrono::system_clock>();
  }

  /// In microseconds.
  float elapsed(
      const ProfilerVoidEventStub* begin, const ProfilerVoidEventStub* end) const override {
    const auto& first = *static_cast<const Event*>(begin->get());
    const auto& last = *static_cast<const Event*>(end->get());
    first.synchronize();
    last.synchronize();
    float ms = 0;
    PUONE_CHECK(hal().event_elapsed_ms(first.handle(), last.handle(), &ms));
    return ms * 1000;
  }

  void mark(const char* /*name*/) const override {
    throwNoMarks();
  }
  void rangePush(const char* /*name*/) const override {
    throwNoMarks();
  }
  void rangePop() const override {
    throwNoMarks();
  }

  bool enabled() const override {
    return driverState().available();
  }

  void onEachDevice(std::function<void(int)> body) const override {
    for (int device = 0; device < driverState().device_count; ++device) body(device);
  }

  void synchronize() const override {
    for (int device = 0; device < driverState().device_count; ++device) {
      PUONE_CHECK(hal().device_synchronize(device));
    }
  }
};

const bool registered = [] {
  static Stubs stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
  return true;
}();

} // namespace
} // namespace puone::profiler
