// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/launch.h"

#include <cstring>

#include "drivers/common/error.h"

namespace puone::sim {
namespace {

/// Bytes below which a second core costs more than it brings.
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

kernels::Fault SimLaunch::fault(std::string_view message) {
  fault_messages_.emplace_back(message);
  return {&fault_, static_cast<uint32_t>(fault_messages_.size())};
}

void SimLaunch::throwDeviceError() const {
  if (fault_.code == 0) return;
  fail(PUONE_INTERNAL, "%s", kernels::faultText(fault_messages_[fault_.code - 1], fault_).c_str());
}

void SimLaunch::spread(int64_t n, int64_t grain, RangeBody body, const void* context) {
  parallel_.run(n, grain, body, context);
}

} // namespace puone::sim
