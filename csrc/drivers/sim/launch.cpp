// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/launch.h"

#include <cstring>

#include "drivers/common/device_error_text.h"
#include "drivers/common/error.h"

namespace puone::sim {
namespace {

/// Below this number of bytes a second core costs more time than it saves.
constexpr int64_t kGrainBytes = 128 << 10;

} // namespace

void SimLaunch::copyBytes(void* to, const void* from, size_t bytes) {
  forRanges(static_cast<int64_t>(bytes), kGrainBytes, [=](int64_t begin, int64_t end) {
    std::memcpy(
        static_cast<char*>(to) + begin,
        static_cast<const char*>(from) + begin,
        static_cast<size_t>(end - begin));
  });
}

void SimLaunch::fillBytes(void* to, int value, size_t bytes) {
  forRanges(static_cast<int64_t>(bytes), kGrainBytes, [=](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(to) + begin, value, static_cast<size_t>(end - begin));
  });
}

unsigned char* SimLaunch::resolve(void* device_address) const {
  return static_cast<unsigned char*>(memory_.resolve(device_address));
}

kernels::DeviceError SimLaunch::deviceError(std::string_view message) {
  error_messages_.emplace_back(message);
  return {&error_, static_cast<uint32_t>(error_messages_.size())};
}

void SimLaunch::throwDeviceError() const {
  if (error_.code == 0) return;
  fail(PUONE_INTERNAL, "%s", deviceErrorText(error_messages_[error_.code - 1], error_).c_str());
}

void SimLaunch::spread(int64_t n, int64_t grain, RangeBody body, const void* context) {
  parallel_.run(n, grain, body, context);
}

} // namespace puone::sim
