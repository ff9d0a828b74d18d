// SPDX-License-Identifier: BSD-3-Clause
// The adaptor for structured operators. PyTorch's meta function of such an operator
// (at::meta::structured_*) checks the arguments and says what the outputs look like; what is left
// is to make the outputs and to compute. A device kernel is a class over the meta:
//
//   struct Mm : at::meta::structured_mm {
//     void impl(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {...}
//   };
// with a row in operators.yaml, of which is generated
//
//   structured<Mm, Kernels<...>, at::_ops::mm, at::_ops::mm_out>(m);
//
// The form of each registered overload (functional, in-place or out) is read off its signature.
// Arguments of a type that the kernels do not compute in go to the CPU fallback; a class with its
// own `static bool supports(inputs...)` decides that for itself, for all forms. If the meta
// precomputes something, impl gets it as first argument. The counterpart of torchgen's
// dest/register_dispatch_key.py.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "aten/core/forms.h"
#include "aten/core/operands.h"
#include "aten/core/registration.h"

// Until torch 2.12 outputs could have named dimensions.
#if __has_include(<ATen/core/Dimname.h>)
#include <ATen/core/Dimname.h>
#define PUONE_NAMES_PARAMETER , at::DimnameList names
#define PUONE_NAMES_ARGUMENT , names
#else
#define PUONE_NAMES_PARAMETER
#define PUONE_NAMES_ARGUMENT
#endif

namespace puone {

namespace structured_detail {

// What a meta function wants where the dispatcher brings something else.
template <class T>
const T& metaArgument(const T& value) {
  return value;
}
inline at::OptionalTensorRef metaArgument(const std::optional<at::Tensor>& tensor) {
  return tensor ? at::OptionalTensorRef(*tensor) : at::OptionalTensorRef();
}
inline at::OptionalScalarRef metaArgument(const std::optional<c10::Scalar>& scalar) {
  return scalar ? at::OptionalScalarRef(*scalar) : at::OptionalScalarRef();
}
inline c10::IntArrayRef metaArgument(c10::SymIntArrayRef sizes) {
  return C10_AS_INTARRAYREF_SLOW(sizes);
}
inline at::IOptTensorListRef metaArgument(const c10::List<std::optional<at::Tensor>>& tensors) {
  return tensors;
}
inline int64_t metaArgument(const c10::SymInt& value) {
  return value.guard_int(__FILE__, __LINE__);
}

// Calls visit(tensor) for the tensors in one argument.
template <class T, class Visit>
void visitTensors(const T& value, const Visit& visit) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    if (value.defined()) visit(value);
  } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
    if (value && value->defined()) visit(*value);
  } else if constexpr (std::is_same_v<T, at::ITensorListRef> || std::is_same_v<T, at::TensorList>) {
    for (const at::Tensor& tensor : value) visitTensors(tensor, visit);
  }
}

template <class... A>
bool areComputable(const A&... arguments) {
  bool result = true;
  const auto visit = [&](const at::Tensor& t) { result &= isComputable(t.scalar_type()); };
  (visitTensors(arguments, visit), ...);
  return result;
}

// Whether the class has a member of that name: then it makes the one of NoSupports ambiguous.
struct NoSupports {
  static void supports() {}
};
template <class Op>
struct BothSupports : Op, NoSupports {};
template <class Op>
concept DecidesItself = !requires { &BothSupports<Op>::supports; };

// Whether the class computes these arguments: the inputs, and the outputs that it is given.
template <class Op, class All, size_t... kInput>
bool supports(const All& all, std::index_sequence<kInput...>) {
  if constexpr (DecidesItself<Op>) {
    return Op::supports(std::as_const(std::get<kInput>(all))...);
  } else {
    return std::apply([](const auto&... each) { return areComputable(each...); }, all);
  }
}

// TensorIterator checks devices itself, and lets scalars stay on the CPU.
template <class Op, class... A>
void checkSameDevice(const char* name, const A&... arguments) {
  if constexpr (!std::is_base_of_v<at::TensorIteratorBase, Op>) {
    std::optional<c10::Device> device;
    const auto visit = [&](const at::Tensor& tensor) {
      if (!device) device = tensor.device();
      TORCH_CHECK(
          tensor.device() == *device,
          "Expected all tensors to be on the same device, but got tensors on ",
          *device,
          " and ",
          tensor.device(),
          " in ",
          name);
    };
    (visitTensors(arguments, visit), ...);
  }
}

// The operator, with outputs that it makes or that the caller gave.
template <class Op, size_t kOutputs>
class WithOutputs final : public Op {
 public:
  using Outputs = std::array<at::Tensor, kOutputs>;

  // `outputs` must outlive this.
  WithOutputs(Form form, Outputs& outputs) : form_(form), outputs_(outputs) {}

  // The outputs must get these strides: an output that has others gets a temporary.
  void set_output_strided(
      int64_t index,
      c10::IntArrayRef sizes,
      c10::IntArrayRef strides,
      c10::TensorOptions options PUONE_NAMES_PARAMETER) override {
    const auto i = static_cast<size_t>(index);
    settleOutput(form_, outputs_[i], sizes, strides, options);
    replaceOutput(form_, outputs_[i], given_[i], sizes, strides, options);
    tellIterator(index, sizes, strides, options PUONE_NAMES_ARGUMENT);
  }

  // The outputs may have any strides.
  void set_output_raw_strided(
      int64_t index,
      c10::IntArrayRef sizes,
      c10::IntArrayRef strides,
      c10::TensorOptions options PUONE_NAMES_PARAMETER) override {
    settleOutput(form_, outputs_[static_cast<size_t>(index)], sizes, strides, options);
    tellIterator(index, sizes, strides, options PUONE_NAMES_ARGUMENT);
  }

  const at::Tensor& maybe_get_output(int64_t index) override {
    return outputs_[static_cast<size_t>(index)];
  }

  // Copies results from temporary memory to the outputs that the caller gave.
  void copyBack() {
    for (size_t i = 0; i < kOutputs; ++i) {
      if (!given_[i].defined()) continue;
      given_[i].copy_(outputs_[i]);
      outputs_[i] = std::move(given_[i]);
    }
  }

 private:
  void tellIterator(
      int64_t index,
      c10::IntArrayRef sizes,
      c10::IntArrayRef strides,
      const c10::TensorOptions& options PUONE_NAMES_PARAMETER) {
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Op>) {
      Op::set_output_raw_strided(
          index, sizes, strides, options PUONE_NAMES_ARGUMENT); // last: it asks for them
    }
  }

  const Form form_;
  Outputs& outputs_;
  Outputs given_; // the outputs that have temporaries in their place
};

// Runs the operator in any form, so that it is compiled once for all of them. `outputs`: what the
// caller gave, or undefined for the functional form; afterwards the results.
template <class Op, size_t kOutputs, class... A>
void run(Form form, std::array<at::Tensor, kOutputs>& outputs, const A&... arguments) {
  WithOutputs<Op, kOutputs> op(form, outputs);
  std::apply(
      [&](const auto&... output) {
        if constexpr (std::is_void_v<decltype(op.meta(metaArgument(arguments)...))>) {
          op.meta(metaArgument(arguments)...);
          op.impl(metaArgument(arguments)..., output...);
        } else {
          const auto precomputed = op.meta(metaArgument(arguments)...);
          op.impl(precomputed, metaArgument(arguments)..., output...);
        }
      },
      outputs);
  op.copyBack();
}

template <class Op, class Overload, size_t kOutputs, class... A>
std::array<at::Tensor, kOutputs> functional(const A&... arguments) {
  checkSameDevice<Op>(Overload::name, arguments...);
  std::array<at::Tensor, kOutputs> outputs;
  run<Op>(Form::kFunctional, outputs, arguments...);
  return outputs;
}

// The arguments are the inputs, then the outputs.
template <class Op, class Overload, class All, size_t... kInput, size_t... kOutput>
void out(const All& all, std::index_sequence<kInput...>, std::index_sequence<kOutput...>) {
  checkSameDevice<Op>(
      Overload::name,
      std::get<kInput>(all)...,
      std::as_const(std::get<sizeof...(kInput) + kOutput>(all))...);
  std::array<at::Tensor, sizeof...(kOutput)> outputs{std::get<sizeof...(kInput) + kOutput>(all)...};
  run<Op>(Form::kOut, outputs, std::get<kInput>(all)...);
}

// One overload as the dispatcher calls it.
template <class Op, class Overload, class Schema = typename Overload::schema>
struct Entry;

template <class Op, class Overload, class... A>
struct Entry<Op, Overload, at::Tensor(A...)> {
  static at::Tensor call(A... arguments) {
    const auto inputs = std::index_sequence_for<A...>();
    if (!supports<Op>(std::tie(arguments...), inputs)) return fallBack<Overload>(arguments...);
    return std::get<0>(functional<Op, Overload, 1>(arguments...));
  }
};

template <class Op, class Overload, class... R, class... A>
  requires(std::is_same_v<R, at::Tensor> && ...)
struct Entry<Op, Overload, std::tuple<R...>(A...)> {
  static std::tuple<R...> call(A... arguments) {
    const auto inputs = std::index_sequence_for<A...>();
    if (!supports<Op>(std::tie(arguments...), inputs)) return fallBack<Overload>(arguments...);
    return std::tuple_cat(functional<Op, Overload, sizeof...(R)>(arguments...));
  }
};

template <class Op, class Overload, class... A>
struct Entry<Op, Overload, at::Tensor&(at::Tensor&, A...)> {
  static at::Tensor& call(at::Tensor& self, A... arguments) {
    const at::Tensor& input = self;
    const auto inputs = std::make_index_sequence<1 + sizeof...(A)>();
    if (!supports<Op>(std::tie(input, arguments...), inputs)) {
      return fallBack<Overload>(self, arguments...);
    }
    checkSameDevice<Op>(Overload::name, input, arguments...);
    std::array<at::Tensor, 1> outputs{self};
    run<Op>(Form::kInplace, outputs, input, arguments...);
    return self;
  }
};

template <class Op, class Overload, class First, class... A>
  requires(!std::is_same_v<First, at::Tensor&>)
struct Entry<Op, Overload, at::Tensor&(First, A...)> {
  static at::Tensor& call(First first, A... arguments) {
    const auto inputs = std::make_index_sequence<sizeof...(A)>();
    const auto all = std::tie(first, arguments...);
    if (!supports<Op>(all, inputs)) return fallBack<Overload>(first, arguments...);
    out<Op, Overload>(all, inputs, std::index_sequence<0>());
    return std::get<sizeof...(A)>(all);
  }
};

template <class Op, class Overload, class... R, class... A>
  requires(std::is_same_v<R, at::Tensor&> && ...)
struct Entry<Op, Overload, std::tuple<R...>(A...)> {
  static std::tuple<R...> call(A... arguments) {
    constexpr size_t kInputs = sizeof...(A) - sizeof...(R);
    const auto inputs = std::make_index_sequence<kInputs>();
    const auto all = std::tie(arguments...);
    if (!supports<Op>(all, inputs)) return fallBack<Overload>(arguments...);
    out<Op, Overload>(all, inputs, std::index_sequence_for<R...>());
    return [&]<size_t... kOutput>(std::index_sequence<kOutput...>) {
      return std::tuple<R...>(std::get<kInputs + kOutput>(all)...);
    }(std::index_sequence_for<R...>());
  }
};

} // namespace structured_detail

// Registers the class for these overloads (at::_ops::mm, at::_ops::mm_out).
template <class Op, class Kernels, class... Overloads>
void structured(torch::Library& m) {
  (implement<Overloads, Kernels, &structured_detail::Entry<Op, Overloads>::call>(m), ...);
}

} // namespace puone
