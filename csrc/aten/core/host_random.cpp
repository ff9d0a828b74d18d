// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/host_random.h"

#include <mutex>
#include <tuple>

#include "runtime/generator.h"

namespace puone {
namespace {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA'14): the
// usual way to spread a short seed over a long state.
uint64_t splitMix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// A Mersenne Twister whose state depends on all bits of both numbers; its constructor would use
// only 32 bits of the seed, and among some ten thousand calls two would repeat each other.
at::mt19937 engine(uint64_t seed, uint64_t offset) {
  uint64_t mixer = seed;
  mixer = splitMix(mixer) ^ offset;
  at::mt19937_data_pod data{};
  data.seed_ = seed;
  data.left_ = 1;
  data.seeded_ = true;
  for (auto& word : data.state_) word = static_cast<uint32_t>(splitMix(mixer) >> 32);
  at::mt19937 result;
  result.set_data(data);
  return result;
}

// The smallest step: every call has its own state, however many numbers it draws.
constexpr uint64_t kStep = 4;

at::CPUGeneratorImpl* cpuImpl(const at::Generator& generator) {
  return static_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl());
}

// The default generator is one object for the whole process, so its implementation is exchanged.
void exchangeWithDefault(const at::Generator& generator) {
  at::CPUGeneratorImpl* one = cpuImpl(generator);
  at::CPUGeneratorImpl* other = cpuImpl(at::detail::getDefaultCPUGenerator());
  const std::lock_guard<std::mutex> lock(other->mutex_);
  const at::mt19937 engine = other->engine();
  const auto next_float = other->next_float_normal_sample();
  const auto next_double = other->next_double_normal_sample();
  other->set_engine(one->engine());
  other->set_next_float_normal_sample(one->next_float_normal_sample());
  other->set_next_double_normal_sample(one->next_double_normal_sample());
  one->set_engine(engine);
  one->set_next_float_normal_sample(next_float);
  one->set_next_double_normal_sample(next_double);
}

std::mutex& exchangeMutex() {
  static auto* mutex = new std::mutex; // not destroyed at exit, when threads may still wait
  return *mutex;
}

} // namespace

AsDefaultGenerator::AsDefaultGenerator(const at::Generator& generator)
    : only_one_(exchangeMutex()), generator_(generator) {
  exchangeWithDefault(generator_);
}

AsDefaultGenerator::~AsDefaultGenerator() {
  exchangeWithDefault(generator_);
}

HostDraw::HostDraw(const std::optional<at::Generator>& generator, c10::Device device)
    : host_(at::detail::createCPUGenerator()),
      device_(generatorOrDefault(generator, device.index())) {
  std::tie(seed_, offset_) = device_.get<GeneratorImpl>()->reserve(kStep);
  cpuImpl(host_)->set_engine(engine(seed_, offset_));
}

HostDraw::~HostDraw() {
  // A new Mersenne Twister has used none of its words.
  if (cpuImpl(host_)->engine().data().next_ != 0) return;
  auto* impl = static_cast<GeneratorImpl*>(device_.unsafeGetGeneratorImpl());
  const std::lock_guard<std::mutex> lock(impl->mutex_);
  const bool alone = impl->current_seed() == seed_ && impl->get_offset() == offset_ + kStep;
  if (alone) impl->set_offset(offset_);
}

} // namespace puone
