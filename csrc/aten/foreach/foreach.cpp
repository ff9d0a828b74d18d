// SPDX-License-Identifier: BSD-3-Clause
// The optimizers' operators on lists of tensors, a launch for many tensors. What does not suit that
// - tensors of several types or layouts, integers, complex numbers - takes torch's own way, tensor
// by tensor.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_abs_native.h>
#include <ATen/ops/_foreach_abs_ops.h>
#include <ATen/ops/_foreach_add_native.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_addcdiv_native.h>
#include <ATen/ops/_foreach_addcdiv_ops.h>
#include <ATen/ops/_foreach_addcmul_native.h>
#include <ATen/ops/_foreach_addcmul_ops.h>
#include <ATen/ops/_foreach_clamp_max_native.h>
#include <ATen/ops/_foreach_clamp_max_ops.h>
#include <ATen/ops/_foreach_clamp_min_native.h>
#include <ATen/ops/_foreach_clamp_min_ops.h>
#include <ATen/ops/_foreach_div_native.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_exp_native.h>
#include <ATen/ops/_foreach_exp_ops.h>
#include <ATen/ops/_foreach_lerp_native.h>
#include <ATen/ops/_foreach_lerp_ops.h>
#include <ATen/ops/_foreach_mul_native.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/_foreach_neg_native.h>
#include <ATen/ops/_foreach_neg_ops.h>
#include <ATen/ops/_foreach_pow_native.h>
#include <ATen/ops/_foreach_pow_ops.h>
#include <ATen/ops/_foreach_reciprocal_native.h>
#include <ATen/ops/_foreach_reciprocal_ops.h>
#include <ATen/ops/_foreach_sqrt_native.h>
#include <ATen/ops/_foreach_sqrt_ops.h>
#include <ATen/ops/_foreach_sub_native.h>
#include <ATen/ops/_foreach_sub_ops.h>
#include <torch/library.h>

#include <cstring>
#include <string>
#include <vector>

#include "aten/core/factory.h"
#include "aten/foreach/multi_tensor.h"

namespace puone {
namespace {

using at::Tensor;
using at::TensorList;
using c10::Scalar;
using Scalars = at::ArrayRef<Scalar>;

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

  bool fits() const {
    return fits_;
  }

  void launch(const Kernel& kernel, TensorList out) const {
    const c10::ScalarType type = self_[0].scalar_type();
    const bool wide = type == c10::kDouble;
    puone_foreach_args args{};
    args.compute = wide ? PUONE_FLOAT64 : PUONE_FLOAT32;
    args.dtypes[0] = *kernelDtype(type);
    put(args.parameters[0], alpha_, wide);
    for (size_t o = 0; o < operands_.size(); ++o) describe(args, static_cast<int>(o) + 1, wide);
    launchTensors(kernel, args, self_, [&](auto& tensor, size_t i) {
      tensor.data[0] = out[i].data_ptr();
      for (size_t o = 0; o < operands_.size(); ++o) {
        const Operand& operand = operands_[o];
        if (operand.number) {
          tensor.data[o + 1] = operand.number->data_ptr();
        } else if (operand.scalars.empty()) {
          tensor.data[o + 1] = operand.tensors[i].data_ptr();
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

// How an operator is computed. Constants before anything is registered.
struct Way {
  const char* kernel = nullptr;
  bool has_alpha = false;
};

template <class Overload, auto kSlow, class Schema = typename Overload::schema>
struct Foreach;

// Autograd does not count the changes of lists' tensors.
template <class Overload, auto kSlow, class... A>
struct Foreach<Overload, kSlow, void(TensorList, A...)> {
  static constinit inline Way way{};
  static void call(TensorList self, A... arguments) {
    static const Kernel kernel(way.kernel);
    ForeachCall op(self, way.has_alpha);
    (op.add(arguments), ...);
    if (!op.fits()) return kSlow(self, arguments...);
    op.launch(kernel, self);
    for (const Tensor& tensor : self) tensor.unsafeGetTensorImpl()->bump_version();
  }
};

template <class Overload, auto kSlow, class... A>
struct Foreach<Overload, kSlow, std::vector<Tensor>(TensorList, A...)> {
  static constinit inline Way way{};
  static std::vector<Tensor> call(TensorList self, A... arguments) {
    static const Kernel kernel(way.kernel);
    ForeachCall op(self, way.has_alpha);
    (op.add(arguments), ...);
    if (!op.fits()) return kSlow(self, arguments...);
    std::vector<Tensor> out;
    out.reserve(self.size());
    for (const Tensor& t : self) out.push_back(newResult(t.sizes(), t.strides(), t.options()));
    op.launch(kernel, out);
    return out;
  }
};

template <class Overload, auto kSlow>
void foreach (torch::Library& m, Way way) {
  using Entry = Foreach<Overload, kSlow>;
  Entry::way = way;
  std::string name = Overload::name;
  if (*Overload::overload_name != '\0') name += std::string(".") + Overload::overload_name;
  m.impl(name.c_str(), TORCH_FN((Entry::call)));
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  namespace ops = at::_ops;
  namespace slow = at::native;
  foreach
    <ops::_foreach_sqrt, &slow::foreach_tensor_sqrt_slow>(m, {"foreach_sqrt"});
  foreach
    <ops::_foreach_sqrt_, &slow::foreach_tensor_sqrt_slow_>(m, {"foreach_sqrt"});
  foreach
    <ops::_foreach_exp, &slow::foreach_tensor_exp_slow>(m, {"foreach_exp"});
  foreach
    <ops::_foreach_exp_, &slow::foreach_tensor_exp_slow_>(m, {"foreach_exp"});
  foreach
    <ops::_foreach_abs, &slow::foreach_tensor_abs_slow>(m, {"foreach_abs"});
  foreach
    <ops::_foreach_abs_, &slow::foreach_tensor_abs_slow_>(m, {"foreach_abs"});
  foreach
    <ops::_foreach_neg, &slow::foreach_tensor_neg_slow>(m, {"foreach_neg"});
  foreach
    <ops::_foreach_neg_, &slow::foreach_tensor_neg_slow_>(m, {"foreach_neg"});
  foreach
    <ops::_foreach_reciprocal, &slow::foreach_tensor_reciprocal_slow>(m, {"foreach_reciprocal"});
  foreach
    <ops::_foreach_reciprocal_, &slow::foreach_tensor_reciprocal_slow_>(m, {"foreach_reciprocal"});
  foreach
    <ops::_foreach_add_Scalar, &slow::foreach_tensor_add_scalar_kernel_slow>(m, {"foreach_add"});
  foreach
    <ops::_foreach_add__Scalar, &slow::foreach_tensor_add_scalar_kernel_slow_>(m, {"foreach_add"});
  foreach
    <ops::_foreach_add_List, &slow::foreach_tensor_add_list_kernel_slow>(m, {"foreach_add", true});
  foreach
    <ops::_foreach_add__List, &slow::foreach_tensor_add_list_kernel_slow_>(
        m, {"foreach_add", true});
  foreach
    <ops::_foreach_add_ScalarList, &slow::foreach_tensor_add_scalarlist_kernel_slow>(
        m, {"foreach_add"});
  foreach
    <ops::_foreach_add__ScalarList, &slow::foreach_tensor_add_scalarlist_kernel_slow_>(
        m, {"foreach_add"});
  foreach
    <ops::_foreach_add_Tensor, &slow::foreach_tensor_add_tensor_kernel_slow>(
        m, {"foreach_add", true});
  foreach
    <ops::_foreach_add__Tensor, &slow::foreach_tensor_add_tensor_kernel_slow_>(
        m, {"foreach_add", true});
  foreach
    <ops::_foreach_sub_Scalar, &slow::foreach_tensor_sub_scalar_kernel_slow>(m, {"foreach_sub"});
  foreach
    <ops::_foreach_sub__Scalar, &slow::foreach_tensor_sub_scalar_kernel_slow_>(m, {"foreach_sub"});
  foreach
    <ops::_foreach_sub_List, &slow::foreach_tensor_sub_list_kernel_slow>(m, {"foreach_sub", true});
  foreach
    <ops::_foreach_sub__List, &slow::foreach_tensor_sub_list_kernel_slow_>(
        m, {"foreach_sub", true});
  foreach
    <ops::_foreach_sub_ScalarList, &slow::foreach_tensor_sub_scalarlist_kernel_slow>(
        m, {"foreach_sub"});
  foreach
    <ops::_foreach_sub__ScalarList, &slow::foreach_tensor_sub_scalarlist_kernel_slow_>(
        m, {"foreach_sub"});
  foreach
    <ops::_foreach_mul_Scalar, &slow::foreach_tensor_mul_scalar_kernel_slow>(m, {"foreach_mul"});
  foreach
    <ops::_foreach_mul__Scalar, &slow::foreach_tensor_mul_scalar_kernel_slow_>(m, {"foreach_mul"});
  foreach
    <ops::_foreach_mul_List, &slow::foreach_tensor_mul_list_kernel_slow>(m, {"foreach_mul"});
  foreach
    <ops::_foreach_mul__List, &slow::foreach_tensor_mul_list_kernel_slow_>(m, {"foreach_mul"});
  foreach
    <ops::_foreach_mul_ScalarList, &slow::foreach_tensor_mul_scalarlist_kernel_slow>(
        m, {"foreach_mul"});
  foreach
    <ops::_foreach_mul__ScalarList, &slow::foreach_tensor_mul_scalarlist_kernel_slow_>(
        m, {"foreach_mul"});
  foreach
    <ops::_foreach_mul_Tensor, &slow::foreach_tensor_mul_tensor_kernel_slow>(m, {"foreach_mul"});
  foreach
    <ops::_foreach_mul__Tensor, &slow::foreach_tensor_mul_tensor_kernel_slow_>(m, {"foreach_mul"});
  foreach
    <ops::_foreach_div_Scalar, &slow::foreach_tensor_div_scalar_kernel_slow>(m, {"foreach_div"});
  foreach
    <ops::_foreach_div__Scalar, &slow::foreach_tensor_div_scalar_kernel_slow_>(m, {"foreach_div"});
  foreach
    <ops::_foreach_div_List, &slow::foreach_tensor_div_list_kernel_slow>(m, {"foreach_div"});
  foreach
    <ops::_foreach_div__List, &slow::foreach_tensor_div_list_kernel_slow_>(m, {"foreach_div"});
  foreach
    <ops::_foreach_div_ScalarList, &slow::foreach_tensor_div_scalarlist_kernel_slow>(
        m, {"foreach_div"});
  foreach
    <ops::_foreach_div__ScalarList, &slow::foreach_tensor_div_scalarlist_kernel_slow_>(
        m, {"foreach_div"});
  foreach
    <ops::_foreach_div_Tensor, &slow::foreach_tensor_div_tensor_kernel_slow>(m, {"foreach_div"});
  foreach
    <ops::_foreach_div__Tensor, &slow::foreach_tensor_div_tensor_kernel_slow_>(m, {"foreach_div"});
  foreach
    <ops::_foreach_pow_Scalar, &slow::foreach_tensor_pow_scalar_kernel_slow>(m, {"foreach_pow"});
  foreach
    <ops::_foreach_pow__Scalar, &slow::foreach_tensor_pow_scalar_kernel_slow_>(m, {"foreach_pow"});
  foreach
    <ops::_foreach_pow_List, &slow::foreach_tensor_pow_list_kernel_slow>(m, {"foreach_pow"});
  foreach
    <ops::_foreach_pow__List, &slow::foreach_tensor_pow_list_kernel_slow_>(m, {"foreach_pow"});
  foreach
    <ops::_foreach_pow_ScalarList, &slow::foreach_tensor_pow_scalarlist_kernel_slow>(
        m, {"foreach_pow"});
  foreach
    <ops::_foreach_pow__ScalarList, &slow::foreach_tensor_pow_scalarlist_kernel_slow_>(
        m, {"foreach_pow"});
  foreach
    <ops::_foreach_clamp_min_Scalar, &slow::foreach_tensor_clamp_min_scalar_kernel_slow>(
        m, {"foreach_maximum"});
  foreach
    <ops::_foreach_clamp_min__Scalar, &slow::foreach_tensor_clamp_min_scalar_kernel_slow_>(
        m, {"foreach_maximum"});
  foreach
    <ops::_foreach_clamp_min_List, &slow::foreach_tensor_clamp_min_list_kernel_slow>(
        m, {"foreach_maximum"});
  foreach
    <ops::_foreach_clamp_min__List, &slow::foreach_tensor_clamp_min_list_kernel_slow_>(
        m, {"foreach_maximum"});
  foreach
    <ops::_foreach_clamp_min_ScalarList, &slow::foreach_tensor_clamp_min_scalarlist_kernel_slow>(
        m, {"foreach_maximum"});
  foreach
    <ops::_foreach_clamp_min__ScalarList, &slow::foreach_tensor_clamp_min_scalarlist_kernel_slow_>(
        m, {"foreach_maximum"});
  foreach
    <ops::_foreach_clamp_max_Scalar, &slow::foreach_tensor_clamp_max_scalar_kernel_slow>(
        m, {"foreach_minimum"});
  foreach
    <ops::_foreach_clamp_max__Scalar, &slow::foreach_tensor_clamp_max_scalar_kernel_slow_>(
        m, {"foreach_minimum"});
  foreach
    <ops::_foreach_clamp_max_List, &slow::foreach_tensor_clamp_max_list_kernel_slow>(
        m, {"foreach_minimum"});
  foreach
    <ops::_foreach_clamp_max__List, &slow::foreach_tensor_clamp_max_list_kernel_slow_>(
        m, {"foreach_minimum"});
  foreach
    <ops::_foreach_clamp_max_ScalarList, &slow::foreach_tensor_clamp_max_scalarlist_kernel_slow>(
        m, {"foreach_minimum"});
  foreach
    <ops::_foreach_clamp_max__ScalarList, &slow::foreach_tensor_clamp_max_scalarlist_kernel_slow_>(
        m, {"foreach_minimum"});
  foreach
    <ops::_foreach_addcmul_Scalar, &slow::foreach_tensor_addcmul_scalar_slow>(
        m, {"foreach_addcmul"});
  foreach
    <ops::_foreach_addcmul__Scalar, &slow::foreach_tensor_addcmul_scalar_slow_>(
        m, {"foreach_addcmul"});
  foreach
    <ops::_foreach_addcmul_ScalarList, &slow::foreach_tensor_addcmul_scalarlist_slow>(
        m, {"foreach_addcmul"});
  foreach
    <ops::_foreach_addcmul__ScalarList, &slow::foreach_tensor_addcmul_scalarlist_slow_>(
        m, {"foreach_addcmul"});
  foreach
    <ops::_foreach_addcdiv_Scalar, &slow::foreach_tensor_addcdiv_scalar_slow>(
        m, {"foreach_addcdiv"});
  foreach
    <ops::_foreach_addcdiv__Scalar, &slow::foreach_tensor_addcdiv_scalar_slow_>(
        m, {"foreach_addcdiv"});
  foreach
    <ops::_foreach_addcdiv_ScalarList, &slow::foreach_tensor_addcdiv_scalarlist_slow>(
        m, {"foreach_addcdiv"});
  foreach
    <ops::_foreach_addcdiv__ScalarList, &slow::foreach_tensor_addcdiv_scalarlist_slow_>(
        m, {"foreach_addcdiv"});
  foreach
    <ops::_foreach_lerp_List, &slow::foreach_tensor_ternary_lerp_slow>(m, {"foreach_lerp"});
  foreach
    <ops::_foreach_lerp__List, &slow::foreach_tensor_ternary_lerp_slow_>(m, {"foreach_lerp"});
  foreach
    <ops::_foreach_lerp_Scalar, &slow::foreach_tensor_lerp_list_kernel_slow>(m, {"foreach_lerp"});
  foreach
    <ops::_foreach_lerp__Scalar, &slow::foreach_tensor_lerp_list_kernel_slow_>(m, {"foreach_lerp"});
}

} // namespace puone
