// SPDX-License-Identifier: BSD-3-Clause
// The device generator: Philox 4x32-10, a counter-based generator whose whole state is a seed and
// an offset (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11), so device
// kernels need no state in memory and equal (seed, offset) means equal numbers on every driver.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace puone {

class Stream;

// Where a kernel finds its random numbers: kernels/args/random.h says what the fields mean.
struct PhiloxPosition {
  uint64_t seed;   // key of Philox
  uint64_t offset; // numbers that were drawn before
  void* state;     // of a captured launch, else NULL
};

// The random numbers of one device: a seed and an offset into its sequence. Thread-safe where
// c10::GeneratorImpl is with its mutex held, and where a member says so.
class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  // Seeded with PyTorch's default seed.
  explicit GeneratorImpl(c10::DeviceIndex device);

  // Neither the seed nor the offset can be set or read while the device's current stream is being
  // captured: a graph draws from the state that the generator has when it is launched.
  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  // The state is a CPU byte tensor of 16: seed, offset, little endian. Throws on anything else.
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // Two generators with one state, and another state for this one: PyTorch exchanges states so, by
  // reference, where values cannot be read, and to repeat what was drawn. Not thread-safe.
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override;

  // Takes the next `numbers` of 32 bits, rounded up to a multiple of 4: what each thread of a
  // kernel may draw. Returns {seed, offset before}. Thread-safe.
  std::pair<uint64_t, uint64_t> reserve(uint64_t numbers);

  // The same for a kernel that is queued on `stream`. One that is being captured takes its numbers
  // at each launch of the graph, and none now.
  PhiloxPosition draw(uint64_t numbers, const Stream& stream);

  // The next multiple of 4.
  static uint64_t rounded(uint64_t numbers) noexcept {
    return (numbers + 3) / 4 * 4;
  }

 private:
  GeneratorImpl* clone_impl() const override;
  void refuseInCapture() const;

  struct State {
    uint64_t seed = c10::default_rng_seed_val;
    uint64_t offset = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// The device's default generator; -1 is the current device. Lives as long as the process.
const at::Generator& defaultGenerator(c10::DeviceIndex device);

// The given generator, which must be of this device type, or the device's default.
const at::Generator& generatorOrDefault(
    const std::optional<at::Generator>& generator, c10::DeviceIndex device);

// A generator of its own for the device, which the caller shares.
at::Generator newGenerator(c10::DeviceIndex device);

} // namespace puone
