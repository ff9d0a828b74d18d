// SPDX-License-Identifier: BSD-3-Clause
// An optimizer's step on the elements of one parameter.
#pragma once

#include <cmath>

#include "kernels/args/multi_tensor.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace fused {

inline unsigned char* resolved(Launch& launch, void* address) {
  return address == nullptr ? nullptr : launch.resolve(address);
}

/// The options of a step.
struct Options {
  Options(Launch& launch, const puone_fused_args& args)
      : maximize(args.maximize != 0),
        decoupled(args.decoupled != 0),
        nesterov(args.nesterov != 0),
        first_step(args.first_step != 0),
        lr_dtype(args.lr_dtype),
        lr(args.lr),
        beta1(args.beta1),
        beta2(args.beta2),
        weight_decay(args.weight_decay),
        eps(args.eps),
        lr_tensor(resolved(launch, args.lr_tensor)),
        grad_scale(resolved(launch, args.grad_scale)),
        found_inf(resolved(launch, args.found_inf)) {}

  bool maximize, decoupled, nesterov, first_step;
  int32_t lr_dtype;
  double lr, beta1, beta2, weight_decay, eps;
  const unsigned char *lr_tensor, *grad_scale, *found_inf; // or null
};

/// Values that a step reads from device memory besides the tensors.
struct Settings {
  PUONE_FN explicit Settings(const Options& options) : lr(options.lr) {
    if (options.lr_tensor != nullptr) {
      lr = options.lr_dtype == PUONE_FLOAT64 ? load<double>(options.lr_tensor)
                                             : load<float>(options.lr_tensor);
    }
    if (options.grad_scale != nullptr) scale = load<float>(options.grad_scale);
    if (options.found_inf != nullptr) skip = load<float>(options.found_inf) == 1;
  }
  double lr;
  float scale = 1;
  bool skip = false;
};

/// The gradient that optimizers use: unscaled, negated to maximize, with weight decay.
template <class T>
struct Gradient {
  PUONE_FN Gradient(const Options& options, const Settings& settings, bool decays)
      : scale(settings.scale),
        sign(options.maximize ? T(-1) : T(1)),
        decay(decays ? static_cast<T>(options.weight_decay) : T(0)) {}
  PUONE_FN T operator()(T unscaled, T parameter) const {
    return sign * unscaled + decay * parameter;
  }
  T scale, sign, decay;
};

template <class T>
struct Adam {
  PUONE_FN Adam(const Options& options, const Settings& settings, const unsigned char* count)
      : gradient(options, settings, !options.decoupled),
        shrink(options.decoupled ? static_cast<T>(1 - settings.lr * options.weight_decay) : T(1)),
        beta1(static_cast<T>(options.beta1)),
        beta2(static_cast<T>(options.beta2)),
        rest1(static_cast<T>(1 - options.beta1)),
        rest2(static_cast<T>(1 - options.beta2)),
        eps(static_cast<T>(options.eps)) {
    const double step = static_cast<double>(load<float>(count));
    size = static_cast<T>(settings.lr / (1 - std::pow(options.beta1, step)));
    correction = static_cast<T>(std::sqrt(1 - std::pow(options.beta2, step)));
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
  PUONE_FN Sgd(const Options& options, const Settings& settings, const unsigned char* /*count*/)
      : gradient(options, settings, true),
        lr(static_cast<T>(settings.lr)),
        momentum(static_cast<T>(options.beta1)),
        undamped(static_cast<T>(1 - options.beta2)),
        nesterov(options.nesterov),
        first_step(options.first_step) {}

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
  PUONE_FN Adagrad(const Options& options, const Settings& settings, const unsigned char* count)
      : gradient(options, settings, true), eps(static_cast<T>(options.eps)) {
    const double step = static_cast<double>(load<float>(count));
    lr = static_cast<T>(settings.lr / (1 + (step - 1) * options.beta2));
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

} // namespace fused
} // namespace puone::kernels::PUONE_ISA
