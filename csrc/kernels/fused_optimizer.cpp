// SPDX-License-Identifier: BSD-3-Clause
// One optimizer step of many parameters at once.
#include <cmath>

#include "kernels/entry.h"
#include "kernels/families.h"
#include "kernels/multi_tensor.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// What a step reads from device memory besides the tensors.
struct Settings {
  Settings(Launch& launch, const puone_fused_args& args) : lr(args.lr) {
    if (args.lr_tensor != nullptr) {
      const unsigned char* address = launch.resolve(args.lr_tensor);
      lr = args.lr_dtype == PUONE_FLOAT64 ? load<double>(address) : load<float>(address);
    }
    if (args.grad_scale != nullptr) scale = load<float>(launch.resolve(args.grad_scale));
    if (args.found_inf != nullptr) skip = load<float>(launch.resolve(args.found_inf)) == 1;
  }
  double lr;
  float scale = 1;
  bool skip = false;
};

unsigned char* resolved(Launch& launch, void* address) {
  return address == nullptr ? nullptr : launch.resolve(address);
}

double stepOf(Launch& launch, void* step) {
  return static_cast<double>(load<float>(launch.resolve(step)));
}

/// Decides what the arrays of one tensor become. The gradient as the optimizers see it: unscaled,
/// its sign for maximizing, with weight decay.
template <class T>
struct Gradient {
  Gradient(const puone_fused_args& args, const Settings& settings, bool decays)
      : scale(settings.scale),
        sign(args.maximize != 0 ? T(-1) : T(1)),
        decay(decays ? static_cast<T>(args.weight_decay) : T(0)) {}
  PUONE_FN T operator()(T unscaled, T parameter) const {
    return sign * unscaled + decay * parameter;
  }
  T scale, sign, decay;
};

template <class T>
struct Adam {
  Adam(Launch& launch, const puone_fused_args& args, const Settings& settings, int t)
      : gradient(args, settings, args.decoupled == 0),
        shrink(args.decoupled != 0 ? static_cast<T>(1 - settings.lr * args.weight_decay) : T(1)),
        beta1(static_cast<T>(args.beta1)),
        beta2(static_cast<T>(args.beta2)),
        rest1(static_cast<T>(1 - args.beta1)),
        rest2(static_cast<T>(1 - args.beta2)),
        eps(static_cast<T>(args.eps)) {
    const double step = stepOf(launch, args.tensors[t].step);
    size = static_cast<T>(settings.lr / (1 - std::pow(args.beta1, step)));
    correction = static_cast<T>(std::sqrt(1 - std::pow(args.beta2, step)));
  }

  PUONE_FN void operator()(T& parameter, T& unscaled, T& first, T& second, T* largest) const {
    if (gradient.scale != 1) unscaled /= gradient.scale;
    const T g = gradient(unscaled, parameter);
    first += rest1 * (g - first);
    second = beta2 * second + rest2 * g * g;
    T denominator = second;
    if (largest != nullptr) {
      *largest = *largest > second ? *largest : second;
      denominator = *largest;
    }
    parameter = parameter * shrink - size * first / (std::sqrt(denominator) / correction + eps);
  }

  Gradient<T> gradient;
  T shrink, beta1, beta2, rest1, rest2, eps, size, correction;
};

template <class T>
struct Sgd {
  Sgd(Launch& /*launch*/, const puone_fused_args& args, const Settings& settings, int /*t*/)
      : gradient(args, settings, true),
        lr(static_cast<T>(settings.lr)),
        momentum(static_cast<T>(args.beta1)),
        undamped(static_cast<T>(1 - args.beta2)),
        nesterov(args.nesterov != 0),
        first_step(args.first_step != 0) {}

  PUONE_FN void operator()(T& parameter, T& unscaled, T* buffer) const {
    if (gradient.scale != 1) unscaled /= gradient.scale;
    T g = gradient(unscaled, parameter);
    if (buffer != nullptr) {
      *buffer = first_step ? g : momentum * *buffer + undamped * g;
      g = nesterov ? g + momentum * *buffer : *buffer;
    }
    parameter -= lr * g;
  }

  Gradient<T> gradient;
  T lr, momentum, undamped;
  bool nesterov, first_step;
};

template <class T>
struct Adagrad {
  Adagrad(Launch& launch, const puone_fused_args& args, const Settings& settings, int t)
      : gradient(args, settings, true), eps(static_cast<T>(args.eps)) {
    const double step = stepOf(launch, args.tensors[t].step);
    lr = static_cast<T>(settings.lr / (1 + (step - 1) * args.beta2));
  }

  PUONE_FN void operator()(T& parameter, T& unscaled, T& sum) const {
    if (gradient.scale != 1) unscaled /= gradient.scale;
    const T g = gradient(unscaled, parameter);
    sum += g * g;
    parameter -= lr * g / (std::sqrt(sum) + eps);
  }

  Gradient<T> gradient;
  T eps, lr;
};

/// The loops: each array is dense and another's neighbour, so no iteration depends on another.
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
void runIn(Launch& launch, const puone_fused_args& args, const Settings& settings) {
  forTensors(launch, args, [&](int t, int64_t begin, int64_t end) {
    const auto& tensor = args.tensors[t];
    const Step<T> step(launch, args, settings, t);
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

template <template <class> class Step>
void run(Launch& launch, const puone_fused_args& args) {
  const Settings settings(launch, args);
  if (settings.skip) return;
  if (args.dtype == PUONE_FLOAT64) {
    runIn<Step, double>(launch, args, settings);
  } else {
    runIn<Step, float>(launch, args, settings);
  }
}

constexpr Kernel kKernels[] = {
    entry<puone_fused_args, run<Adam>>("fused_adam"),
    entry<puone_fused_args, run<Sgd>>("fused_sgd"),
    entry<puone_fused_args, run<Adagrad>>("fused_adagrad"),
};

} // namespace

std::span<const Kernel> fusedOptimizerKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
