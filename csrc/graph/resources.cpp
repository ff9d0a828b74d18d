// SPDX-License-Identifier: BSD-3-Clause
#include "graph/resources.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/driver.h"
#include "runtime/host_allocator.h"
#include "runtime/kernels.h"

namespace puone::graph {
namespace {

constexpr size_t kStateBytes = 2 * sizeof(uint64_t);
constexpr size_t kMaxGenerators = 32; // what the smallest block of the allocator has room for

// Queues writing {seed, offset}, which travel in the arguments of the kernel.
void writeState(void* state, uint64_t seed, uint64_t offset, const Stream& stream) {
  puone_fill_args args{};
  args.ndim = 1;
  args.element_size = kStateBytes;
  args.sizes[0] = 1;
  args.out.data = state;
  args.out.strides[0] = kStateBytes;
  static_assert(sizeof(args.value) >= kStateBytes);
  std::memcpy(args.value, &seed, sizeof(seed));
  std::memcpy(args.value + sizeof(seed), &offset, sizeof(offset));
  kernel::fill.launch(args, stream);
}

} // namespace

Resources::~Resources() {
  for (const c10::Storage& storage : kept_) {
    const at::DataPtr& memory = storage.data_ptr();
    for (const Stream& stream : launched_on_) {
      hostAllocator().record_event(memory.get(), memory.get_context(), stream.unwrap());
    }
  }
}

void Resources::reserveStates(const Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  states_.emplace(kMaxGenerators * kStateBytes, stream);
}

void* Resources::stateOf(size_t index) const {
  return static_cast<char*>(states_->get()) + index * kStateBytes;
}

size_t Resources::indexOf(GeneratorImpl& generator) {
  const auto known = std::find_if(draws_.begin(), draws_.end(), [&](const Draws& draws) {
    return draws.generator.unsafeGetGeneratorImpl() == &generator;
  });
  if (known != draws_.end()) return static_cast<size_t>(known - draws_.begin());
  TORCH_CHECK_NOT_IMPLEMENTED(
      kernel::fill.available(),
      "puone: random numbers cannot be captured, because the driver \"",
      driverState().name,
      "\" does not have the kernel \"fill\", which sets their state before each replay");
  TORCH_CHECK_NOT_IMPLEMENTED(
      draws_.size() < kMaxGenerators,
      "puone: a graph can draw from ",
      kMaxGenerators,
      " generators, not from more");
  auto reference = c10::intrusive_ptr<GeneratorImpl>::reclaim_copy(&generator);
  draws_.push_back({at::Generator(std::move(reference)), 0});
  return draws_.size() - 1;
}

PhiloxPosition Resources::draw(GeneratorImpl& generator, uint64_t numbers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t index = indexOf(generator);
  const uint64_t before = draws_[index].numbers;
  draws_[index].numbers += GeneratorImpl::rounded(numbers);
  return {0, before, stateOf(index)};
}

void Resources::keep(const c10::Storage& storage) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_.push_back(storage);
}

void Resources::beforeLaunch(const Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (draws_.empty()) return;
  last_.block(stream); // the work of the last launch reads what is written here
  for (size_t index = 0; index < draws_.size(); ++index) {
    const Draws& draws = draws_[index];
    const auto [seed, offset] = draws.generator.get<GeneratorImpl>()->reserve(draws.numbers);
    writeState(stateOf(index), seed, offset, stream);
  }
}

void Resources::afterLaunch(const Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!draws_.empty()) last_.record(stream);
  const auto known = std::find(launched_on_.begin(), launched_on_.end(), stream);
  if (!kept_.empty() && known == launched_on_.end()) launched_on_.push_back(stream);
}

} // namespace puone::graph
