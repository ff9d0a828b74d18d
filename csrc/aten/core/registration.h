// SPDX-License-Identifier: BSD-3-Clause
// What the generated registrations (NAME_registrations.inc, of csrc/aten/operators.yaml) are made of:
//
//   implement<at::_ops::where_self, Kernels<...>, &where>(m);
//
// registers the function for the overload. Where the driver lacks one of the kernels, the overload
// runs on the CPU, and is counted.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <string>
#include <type_traits>

#include "aten/core/fallback.h"

namespace puone {

// The type of a pointer to a function that implements the overload (at::_ops::add_out). Sizes may
// be plain integers instead of symbolic ones.
template <class Overload>
using Signature = std::add_pointer_t<typename Overload::schema>;
template <class Overload>
using SignatureWithoutSymInt =
    std::add_pointer_t<typename c10::fn_remove_symint<typename Overload::schema>::type>;

// Runs one overload on the CPU, and counts it.
template <class Overload, class... A>
decltype(auto) fallBack(A&&... arguments) {
  return at::native::call_fallback_fn_symint<&cpuFallback, Overload>::call(
      std::forward<A>(arguments)...);
}

// The kernels that an operator launches.
template <const auto&... kKernels>
struct Kernels {};

// The name of an overload, as registrations have it: "add.out".
template <class Overload>
std::string overloadName() {
  std::string name = Overload::name;
  if (*Overload::overload_name != '\0') name += std::string(".") + Overload::overload_name;
  return name;
}

// Registers a function, which is a constant, for the overload.
template <class Overload, class Kernels, auto kFunction>
void implement(torch::Library& m) {
  using Function = std::remove_pointer_t<decltype(kFunction)>;
  m.impl(
      overloadName<Overload>().c_str(), c10::CompileTimeFunctionPointer<Function, kFunction>());
}

} // namespace puone
