// SPDX-License-Identifier: BSD-3-Clause
// Optimizer steps on a host.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/args/multi_tensor.h"
#include "kernels/fused_optimizer.h"
#include "kernels/host/multi_tensor.h"

namespace puone::kernels::PUONE_ISA {
namespace fused {

/// The loops over the arrays. Arrays are dense and do not overlap: iterations are independent.
template <class T>
void loop(const Adam<T>& step, const std::array<T*, 5>& a, int64_t n) {
  if (a[4] != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) step(a[0][i], a[1][i], a[2][i], a[3][i], &a[4][i]);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) step(a[0][i], a[1][i], a[2][i], a[3][i], nullptr);
  }
}
template <class T>
void loop(const Sgd<T>& step, const std::array<T*, 5>& a, int64_t n) {
  if (a[2] != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) step(a[0][i], a[1][i], &a[2][i]);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) step(a[0][i], a[1][i], nullptr);
  }
}
template <class T>
void loop(const Adagrad<T>& step, const std::array<T*, 5>& a, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) step(a[0][i], a[1][i], a[2][i]);
}

template <template <class> class Step, class T>
void runIn(
    Launch& launch,
    const puone_fused_args& args,
    const Options& options,
    const Settings& settings) {
  forTensors(launch, args, [&](int t, int64_t begin, int64_t end) {
    const auto& tensor = args.tensors[t];
    const Step<T> step(options, settings, resolved(launch, tensor.step));
    const std::array<unsigned char*, 5> data{
        resolved(launch, tensor.parameter),
        resolved(launch, tensor.gradient),
        resolved(launch, tensor.states[0]),
        resolved(launch, tensor.states[1]),
        resolved(launch, tensor.states[2])};
    updateArrays<T>(data, args.dtype, begin, end, [&](const auto& arrays, int64_t n) {
      loop(Step<T>(step), arrays, n);
    });
  });
}

} // namespace fused

template <template <class> class Step>
void fusedStep(Launch& launch, const puone_fused_args& args) {
  const fused::Options options(launch, args);
  const fused::Settings settings(options);
  if (settings.skip) return;
  if (args.dtype == PUONE_FLOAT64) {
    fused::runIn<Step, double>(launch, args, options, settings);
  } else {
    fused::runIn<Step, float>(launch, args, options, settings);
  }
}

} // namespace puone::kernels::PUONE_ISA
