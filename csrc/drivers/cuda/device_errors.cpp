// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/device_errors.h"

#include <cuda_runtime_api.h>

#include "drivers/common/device_error_text.h"
#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

constexpr uint32_t kTicketBits = 20;
constexpr uint32_t kTickets = 1u << kTicketBits;
constexpr uint32_t kNotLong = kTickets / 16;
constexpr uint32_t kMaxMessages = (1u << (32 - kTicketBits)) - 1;
constexpr size_t kSlab = 4096 / sizeof(kernels::ErrorRecord);

} // namespace

bool isBefore(Ticket a, Ticket b) {
  const uint32_t apart = (b - a) % kTickets;
  return apart != 0 && apart < kTickets / 2;
}

bool isAfter(Ticket a, Ticket b) {
  const uint32_t apart = (a - b) % kTickets;
  return apart != 0 && apart < kNotLong;
}

DeviceErrors::~DeviceErrors() {
  for (kernels::ErrorRecord* slab : slabs_) note("cudaFreeHost", cudaFreeHost(slab));
}

kernels::ErrorRecord* DeviceErrors::take() {
  const std::lock_guard guard(mutex_);
  if (free_.empty()) {
    void* slab = nullptr;
    check(
        "cudaHostAlloc",
        cudaHostAlloc(
            &slab,
            kSlab * sizeof(kernels::ErrorRecord),
            cudaHostAllocPortable | cudaHostAllocMapped));
    slabs_.push_back(static_cast<kernels::ErrorRecord*>(slab));
    free_.reserve(kSlab * slabs_.size()); // so that give() cannot throw
    for (size_t i = 0; i < kSlab; ++i) free_.push_back(slabs_.back() + i);
  }
  kernels::ErrorRecord* record = free_.back();
  free_.pop_back();
  *record = {};
  return record;
}

void DeviceErrors::give(kernels::ErrorRecord* record) {
  const std::lock_guard guard(mutex_);
  free_.push_back(record);
}

uint32_t DeviceErrors::code(const std::string& kernel, std::string_view message) {
  std::string text = kernel;
  text.append(": ").append(message);
  const std::lock_guard guard(mutex_);
  const auto [found, is_new] =
      numbers_.try_emplace(text, static_cast<uint32_t>(messages_.size()) + 1);
  if (is_new) {
    if (messages_.size() == kMaxMessages) {
      numbers_.erase(found);
      fail(PUONE_INTERNAL, "more than %u messages of device errors", kMaxMessages);
    }
    messages_.push_back(std::move(text));
  }
  return found->second << kTicketBits | draw() % kTickets;
}

std::optional<Failure> DeviceErrors::read(kernels::ErrorRecord& record) const {
  const uint32_t code = record.code;
  if (code == 0) return std::nullopt;
  const std::lock_guard guard(mutex_);
  return Failure{
      code % kTickets, &record, deviceErrorText(messages_.at((code >> kTicketBits) - 1), record)};
}

} // namespace puone::cuda
