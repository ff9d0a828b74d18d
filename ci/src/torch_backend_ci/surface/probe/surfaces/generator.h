// SPDX-License-Identifier: BSD-3-Clause
// Random number generators.
#pragma once

#include "version.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <c10/core/GeneratorImpl.h>

namespace probe {
namespace {

struct GeneratorImpl final : c10::GeneratorImpl {
  explicit GeneratorImpl(c10::DeviceIndex index)
      : c10::GeneratorImpl(
            c10::Device(c10::DeviceType::PrivateUse1, index),
            c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  static c10::DeviceType device_type() {
    return c10::DeviceType::PrivateUse1;
  }

  void set_current_seed(uint64_t) override;
  void set_offset(uint64_t) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_state(const c10::TensorImpl&) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>&) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;
#if PROBE_TORCH(2, 14)
  void philox_state(uint64_t, at::Tensor&, at::Tensor&, at::Tensor&) override;
#endif

 private:
  GeneratorImpl* clone_impl() const override {
    return new GeneratorImpl(device().index());
  }
};

at::Generator makeGenerator(c10::DeviceIndex device) {
  return at::make_generator<GeneratorImpl>(device);
}

#if !PROBE_TORCH(2, 15)
REGISTER_GENERATOR_PRIVATEUSE1(makeGenerator)
#endif

void useGenerators(at::Generator generator) {
  auto* impl = at::check_generator<GeneratorImpl>(generator);
  std::lock_guard<std::mutex> lock(impl->mutex_);
  (void)at::get_generator_or_default<GeneratorImpl>(generator, generator);
  generator.set_current_seed(c10::default_rng_seed_val);
  (void)generator.clone();
  (void)c10::detail::getNonDeterministicRandom();
  (void)at::detail::getDefaultCPUGenerator();
  at::Philox4_32 philox(impl->current_seed(), 0, impl->get_offset());
  (void)philox();
}

} // namespace
} // namespace probe
