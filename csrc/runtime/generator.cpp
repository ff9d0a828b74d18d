// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/generator.h"

#include <ATen/Utils.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <c10/core/impl/alloc_cpu.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace puone {
namespace {

constexpr size_t kSeedBytes = sizeof(uint64_t);
constexpr size_t kOffsetBytes = sizeof(uint64_t);
constexpr size_t kStateBytes = kSeedBytes + kOffsetBytes;

} // namespace

GeneratorImpl::GeneratorImpl(c10::DeviceIndex device)
    : c10::GeneratorImpl(
          c10::Device(kDeviceType, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void GeneratorImpl::refuseInCapture() const {
  puone::refuseInCapture(
      getCurrentStream(device().index()), "the state of a generator cannot be set or read");
}

void GeneratorImpl::set_current_seed(uint64_t seed) {
  refuseInCapture();
  state_->seed = seed;
  state_->offset = 0;
}

void GeneratorImpl::set_offset(uint64_t offset) {
  refuseInCapture();
  TORCH_CHECK(offset % 4 == 0, "generator offset must be a multiple of 4, got ", offset);
  state_->offset = offset;
}

uint64_t GeneratorImpl::get_offset() const {
  refuseInCapture();
  return state_->offset;
}

uint64_t GeneratorImpl::current_seed() const {
  refuseInCapture();
  return state_->seed;
}

uint64_t GeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return state_->seed;
}

void GeneratorImpl::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  TORCH_CHECK(
      state.numel() == kStateBytes,
      "puone generator state must have ",
      kStateBytes,
      " bytes, got ",
      state.numel());
  uint64_t seed = 0;
  uint64_t offset = 0;
  const auto* bytes = static_cast<const char*>(state.data());
  std::memcpy(&seed, bytes, kSeedBytes);
  std::memcpy(&offset, bytes + kSeedBytes, kOffsetBytes);
  // The offset first: it may be refused, and the state must then be left as it was.
  set_offset(offset);
  state_->seed = seed;
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorImpl::get_state() const {
  refuseInCapture();
  auto state = at::detail::empty_cpu(
      {static_cast<int64_t>(kStateBytes)}, c10::ScalarType::Byte, {}, {}, {}, {});
  auto* bytes = static_cast<char*>(state.data_ptr());
  std::memcpy(bytes, &state_->seed, kSeedBytes);
  std::memcpy(bytes + kSeedBytes, &state_->offset, kOffsetBytes);
  return state.getIntrusivePtr();
}

c10::intrusive_ptr<c10::GeneratorImpl> GeneratorImpl::graphsafe_get_state() const {
  auto same = c10::make_intrusive<GeneratorImpl>(device().index());
  same->state_ = state_;
  return same;
}

void GeneratorImpl::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) {
  TORCH_CHECK(
      other.defined() && other->device().type() == kDeviceType,
      "Expected the state of a '",
      kDeviceType,
      "' generator");
  state_ = c10::static_intrusive_pointer_cast<GeneratorImpl>(other)->state_;
}

// [quote: reserve]
std::pair<uint64_t, uint64_t> GeneratorImpl::reserve(uint64_t numbers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t before = state_->offset;
  state_->offset += rounded(numbers);
  return {state_->seed, before};
}
// [end: reserve]

PhiloxPosition GeneratorImpl::draw(uint64_t numbers, const Stream& stream) {
  if (const auto capture = captureOf(stream)) return capture->draw(*this, numbers);
  const auto [seed, offset] = reserve(numbers);
  return {seed, offset, nullptr};
}

GeneratorImpl* GeneratorImpl::clone_impl() const {
  auto* copy = new GeneratorImpl(device().index());
  *copy->state_ = *state_;
  return copy;
}

const at::Generator& defaultGenerator(c10::DeviceIndex device) {
  // Leaked: torch keeps references to default generators for ever.
  static auto* generators = [] {
    auto* all = new std::vector<at::Generator>();
    for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
      all->push_back(newGenerator(index));
    }
    return all;
  }();
  return generators->at(static_cast<size_t>(resolveDevice(device)));
}

const at::Generator& generatorOrDefault(
    const std::optional<at::Generator>& generator, c10::DeviceIndex device) {
  const bool given = generator && generator->defined();
  const at::Generator& result = given ? *generator : defaultGenerator(device);
  TORCH_CHECK(
      result.device().type() == kDeviceType,
      "Expected a '",
      kDeviceType,
      "' device type for generator but found '",
      result.device().type(),
      "'");
  return result;
}

at::Generator newGenerator(c10::DeviceIndex device) {
  return at::make_generator<GeneratorImpl>(resolveDevice(device));
}

} // namespace puone
