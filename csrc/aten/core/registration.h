// SPDX-License-Identifier: BSD-3-Clause
// What the generated registrations (NAME_registrations.inc, of csrc/aten/operators.yaml) are made
// of:
//
//   implement<at::_ops::where_self, Kernels<...>, &where>(m);
//
// registers the function for the overload. Where the driver lacks one of the kernels, the overload
// runs on the CPU, and is counted.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <type_traits>
#include <utility>

#include "aten/core/fallback.h"
#include "aten/core/launch.h"

namespace puone {

// The type of a pointer to a function that implements the overload (at::_ops::add_out). Sizes may
// be plain integers instead of symbolic ones.
template <class Overload>
using Signature = std::add_pointer_t<typename Overload::schema>;
template <class Overload>
using SignatureWithoutSymInt =
    std::add_pointer_t<typename c10::fn_remove_symint<typename Overload::schema>::type>;

// Whether a function of that type implements the overload.
template <class Overload, class Function>
inline constexpr bool kImplements = std::is_same_v<Function, Signature<Overload>> ||
                                    std::is_same_v<Function, SignatureWithoutSymInt<Overload>>;

// Runs one overload on the CPU, and counts it. Sizes may be symbolic or plain.
template <class Overload, class... A>
decltype(auto) fallBack(A&&... arguments) {
  using WithSymInt = at::native::call_fallback_fn_symint<&cpuFallback, Overload>;
  using WithoutSymInt = at::native::call_fallback_fn<&cpuFallback, Overload>;
  if constexpr (std::is_invocable_v<decltype(&WithSymInt::call), A...>) {
    return WithSymInt::call(std::forward<A>(arguments)...);
  } else {
    return WithoutSymInt::call(std::forward<A>(arguments)...);
  }
}

// The kernels that an operator launches, from runtime/kernels.h.
template <const auto&... kKernels>
struct Kernels {
  // Whether the driver has all of them.
  static bool available() {
    static const bool result = (kKernels.available() && ...);
    return result;
  }
};

namespace registration_detail {

// The function, or the CPU where the driver lacks one of the kernels or its element type.
template <class Overload, class Kernels, auto kFunction, auto kOnHost, class Function>
struct Guarded;

template <class Overload, class Kernels, auto kFunction, auto kOnHost, class R, class... A>
struct Guarded<Overload, Kernels, kFunction, kOnHost, R(A...)> {
  static R call(A... arguments) {
    if (C10_LIKELY(Kernels::available())) {
      try {
        return kFunction(arguments...);
      } catch (const UnsupportedElementType&) {
        // Nothing was queued that the caller can see.
      }
    }
    if constexpr (kOnHost != nullptr) {
      return kOnHost(arguments...);
    } else {
      return fallBack<Overload>(arguments...);
    }
  }
};

// What implement() does that does not depend on types. `overload` may be empty.
void add(torch::Library& m, const char* name, const char* overload, torch::CppFunction&& function);

} // namespace registration_detail

// Registers a function, which is a constant, for the overload. kOnHost stands for it where the
// driver lacks a kernel and the CPU has no such operator.
template <class Overload, class Kernels, auto kFunction, auto kOnHost = nullptr>
void implement(torch::Library& m) {
  using Function = std::remove_pointer_t<decltype(kFunction)>;
  constexpr auto kEntry = [] {
    if constexpr (std::is_same_v<Kernels, puone::Kernels<>>) {
      return kFunction;
    } else {
      return &registration_detail::Guarded<Overload, Kernels, kFunction, kOnHost, Function>::call;
    }
  }();
  // By its address: torch's boxed wrappers are then compiled once for a signature, which takes a
  // fifth less time than once for a function (TORCH_FN), for one more indirect jump per call.
  registration_detail::add(m, Overload::name, Overload::overload_name, torch::CppFunction(kEntry));
}

} // namespace puone
