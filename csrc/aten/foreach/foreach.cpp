// SPDX-License-Identifier: BSD-3-Clause
// The optimizers' operators on lists of tensors, a launch for many tensors. What does not suit that
// - tensors of several types or layouts, integers, complex numbers - takes torch's own way, tensor
// by tensor.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cstring>
#include <string>
#include <vector>

#include "aten/core/elementwise.h"
#include "aten/core/factory.h"
#include "aten/core/output.h"
#include "aten/foreach/foreach_ops.h"
#include "aten/foreach/multi_tensor.h"

namespace puone {
namespace {

using at::Tensor;
using at::TensorList;
using c10::Scalar;
using Scalars = at::ArrayRef<Scalar>;
using ForeachKernel = kernel::Kernel<puone_foreach_args>;

// An operator's call as one launch, put together argument by argument. `fits` says whether it can
// be one.
class ForeachCall {
 public:
  ForeachCall(TensorList self, bool has_alpha) : self_(self), has_alpha_(has_alpha) {
    fits_ = !self.empty() && areAlike({self});
    add(self);
  }

  void add(TensorList list) {
    fits_ = fits_ && list.size() == self_.size() && areAlike({self_, list});
    operands_.push_back({list});
  }

  // A number for all tensors, in device memory or not.
  void add(const Tensor& number) {
    fits_ = fits_ && number.numel() == 1 && isScalarFor(number);
    if (!fits_) return;
    if (number.is_cpu()) return add(number.item());
    fits_ = number.device() == self_[0].device();
    operands_.push_back({.number = &number});
  }

  // The last number of an operator with an alpha is that.
  void add(const Scalar& number) {
    fits_ = fits_ && !number.isComplex();
    if (has_alpha_ && operands_.size() == 2) {
      alpha_ = number;
    } else {
      operands_.push_back({.scalars = Scalars(&keep(number), 1)});
    }
  }

  void add(Scalars numbers) {
    fits_ = fits_ && numbers.size() == self_.size();
    for (const Scalar& number : numbers) fits_ = fits_ && !number.isComplex();
    operands_.push_back({.scalars = numbers});
  }

  // Whether one launch does: it suits the tensors, and the driver has the kernel for their type.
  bool fits(const ForeachKernel& kernel) const {
    return fits_ && kernel.supports(*kernelDtype(self_[0].scalar_type()));
  }

  void launch(const ForeachKernel& kernel, TensorList out) const {
    const c10::ScalarType type = self_[0].scalar_type();
    const bool wide = type == c10::kDouble;
    puone_foreach_args args{};
    args.compute = wide ? PUONE_FLOAT64 : PUONE_FLOAT32;
    args.dtypes[0] = *kernelDtype(type);
    put(args.parameters[0], alpha_, wide);
    for (size_t o = 0; o < operands_.size(); ++o) describe(args, static_cast<int>(o) + 1, wide);
    launchTensors(kernel, args, self_, [&](auto& tensor, size_t i) {
      tensor.data[0] = outputData(out[i]);
      for (size_t o = 0; o < operands_.size(); ++o) {
        const Operand& operand = operands_[o];
        if (operand.number) {
          tensor.data[o + 1] = inputData(*operand.number);
        } else if (operand.scalars.empty()) {
          tensor.data[o + 1] = inputData(operand.tensors[i]);
        } else {
          put(tensor.immediate, operand.scalars[operand.scalars.size() == 1 ? 0 : i], wide);
        }
      }
    });
  }

 private:
  // One of these.
  struct Operand {
    TensorList tensors{};
    const Tensor* number = nullptr;
    Scalars scalars{};
  };

  // Whether results are of the tensors' type, not of the number's.
  bool isScalarFor(const Tensor& number) const {
    const c10::ScalarType type = number.scalar_type();
    if (type == self_[0].scalar_type()) return true;
    const auto ranks = [](const Tensor& tensor) { return tensor.dim() > 0; };
    return c10::isFloatingType(type) && kernelDtype(type) && number.dim() == 0 &&
           std::all_of(self_.begin(), self_.end(), ranks);
  }

  const Scalar& keep(const Scalar& number) {
    return kept_ = number;
  }

  static void put(unsigned char* to, const Scalar& number, bool wide) {
    const double value = number.toDouble();
    const float narrow = static_cast<float>(value);
    wide ? std::memcpy(to, &value, sizeof value) : std::memcpy(to, &narrow, sizeof narrow);
  }

  void describe(puone_foreach_args& args, int o, bool wide) const {
    const Operand& operand = operands_[static_cast<size_t>(o) - 1];
    if (operand.number) {
      args.broadcast |= 1u << o;
      args.dtypes[o] = *kernelDtype(operand.number->scalar_type());
    } else if (operand.scalars.empty()) {
      args.dtypes[o] = args.dtypes[0];
    } else {
      args.immediate |= 1u << o;
      args.dtypes[o] = wide ? PUONE_FLOAT64 : PUONE_FLOAT32;
    }
  }

  TensorList self_;
  bool has_alpha_;
  bool fits_;
  c10::SmallVector<Operand, PUONE_MULTI_OPERANDS> operands_;
  Scalar kept_;
  Scalar alpha_ = 1;
};

// Autograd does not count the changes of lists' tensors.
template <const ForeachKernel& kKernel, auto kSlow, bool kHasAlpha, class... A>
void overListsInplace(TensorList self, A... arguments) {
  ForeachCall op(self, kHasAlpha);
  (op.add(arguments), ...);
  if (!op.fits(kKernel)) return kSlow(self, arguments...);
  op.launch(kKernel, self);
  for (const Tensor& tensor : self) tensor.unsafeGetTensorImpl()->bump_version();
}

template <const ForeachKernel& kKernel, auto kSlow, bool kHasAlpha, class... A>
std::vector<Tensor> overListsFunctional(TensorList self, A... arguments) {
  ForeachCall op(self, kHasAlpha);
  (op.add(arguments), ...);
  if (!op.fits(kKernel)) return kSlow(self, arguments...);
  std::vector<Tensor> out;
  out.reserve(self.size());
  for (const Tensor& t : self) out.push_back(newResult(t.sizes(), t.strides(), t.options()));
  op.launch(kKernel, out);
  return out;
}

template <const ForeachKernel& kKernel, auto kSlow, bool kHasAlpha, class... A>
constexpr auto entry(void (*)(TensorList, A...)) {
  return &overListsInplace<kKernel, kSlow, kHasAlpha, A...>;
}
template <const ForeachKernel& kKernel, auto kSlow, bool kHasAlpha, class... A>
constexpr auto entry(std::vector<Tensor> (*)(TensorList, A...)) {
  return &overListsFunctional<kKernel, kSlow, kHasAlpha, A...>;
}

// Registers the kernel for the overload; kSlow is for lists that it does not suit.
template <class Overload, const ForeachKernel& kKernel, auto kSlow, bool kHasAlpha>
void overLists(torch::Library& m) {
  implement<Overload, Kernels<>, entry<kKernel, kSlow, kHasAlpha>(Signature<Overload>(nullptr))>(m);
}

} // namespace
} // namespace puone

#include "aten/foreach/foreach_registrations.inc"
