// SPDX-License-Identifier: BSD-3-Clause
// Exponentials, logarithms, roots, trigonometric and hyperbolic functions. The functional form is
// registered of those that models call on small tensors.
#include <ATen/core/Tensor.h>
#include <ATen/ops/acos_meta.h>
#include <ATen/ops/acos_ops.h>
#include <ATen/ops/acosh_meta.h>
#include <ATen/ops/acosh_ops.h>
#include <ATen/ops/asin_meta.h>
#include <ATen/ops/asin_ops.h>
#include <ATen/ops/asinh_meta.h>
#include <ATen/ops/asinh_ops.h>
#include <ATen/ops/atan_meta.h>
#include <ATen/ops/atan_ops.h>
#include <ATen/ops/atanh_meta.h>
#include <ATen/ops/atanh_ops.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/cosh_meta.h>
#include <ATen/ops/cosh_ops.h>
#include <ATen/ops/exp2_meta.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/expm1_meta.h>
#include <ATen/ops/expm1_ops.h>
#include <ATen/ops/log10_meta.h>
#include <ATen/ops/log10_ops.h>
#include <ATen/ops/log1p_meta.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/log2_meta.h>
#include <ATen/ops/log2_ops.h>
#include <ATen/ops/log_meta.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sinc_meta.h>
#include <ATen/ops/sinc_ops.h>
#include <ATen/ops/sinh_meta.h>
#include <ATen/ops/sinh_ops.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/tan_meta.h>
#include <ATen/ops/tan_ops.h>
#include <ATen/ops/tanh_meta.h>
#include <ATen/ops/tanh_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"

namespace puone {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<
      Elementwise<at::meta::structured_exp, "exp", kInexact>,
      at::_ops::exp,
      at::_ops::exp_out>(m);
  structured<Elementwise<at::meta::structured_exp2, "exp2", kInexact>, at::_ops::exp2_out>(m);
  structured<Elementwise<at::meta::structured_expm1, "expm1", kInexact>, at::_ops::expm1_out>(m);
  structured<
      Elementwise<at::meta::structured_log, "log", kInexact>,
      at::_ops::log,
      at::_ops::log_out>(m);
  structured<Elementwise<at::meta::structured_log2, "log2", kInexact>, at::_ops::log2_out>(m);
  structured<Elementwise<at::meta::structured_log10, "log10", kInexact>, at::_ops::log10_out>(m);
  structured<Elementwise<at::meta::structured_log1p, "log1p", kInexact>, at::_ops::log1p_out>(m);
  structured<
      Elementwise<at::meta::structured_sqrt, "sqrt", kInexact>,
      at::_ops::sqrt,
      at::_ops::sqrt_,
      at::_ops::sqrt_out>(m);
  structured<
      Elementwise<at::meta::structured_rsqrt, "rsqrt", kInexact>,
      at::_ops::rsqrt,
      at::_ops::rsqrt_out>(m);
  structured<
      Elementwise<at::meta::structured_sigmoid, "sigmoid", kInexact>,
      at::_ops::sigmoid,
      at::_ops::sigmoid_out>(m);
  structured<
      Elementwise<at::meta::structured_sin, "sin", kInexact>,
      at::_ops::sin,
      at::_ops::sin_out>(m);
  structured<
      Elementwise<at::meta::structured_cos, "cos", kInexact>,
      at::_ops::cos,
      at::_ops::cos_out>(m);
  structured<Elementwise<at::meta::structured_tan, "tan", kInexact>, at::_ops::tan_out>(m);
  structured<Elementwise<at::meta::structured_asin, "asin", kInexact>, at::_ops::asin_out>(m);
  structured<Elementwise<at::meta::structured_acos, "acos", kInexact>, at::_ops::acos_out>(m);
  structured<Elementwise<at::meta::structured_atan, "atan", kInexact>, at::_ops::atan_out>(m);
  structured<Elementwise<at::meta::structured_sinh, "sinh", kInexact>, at::_ops::sinh_out>(m);
  structured<Elementwise<at::meta::structured_cosh, "cosh", kInexact>, at::_ops::cosh_out>(m);
  structured<
      Elementwise<at::meta::structured_tanh, "tanh", kInexact>,
      at::_ops::tanh,
      at::_ops::tanh_out>(m);
  structured<Elementwise<at::meta::structured_asinh, "asinh", kInexact>, at::_ops::asinh_out>(m);
  structured<Elementwise<at::meta::structured_acosh, "acosh", kInexact>, at::_ops::acosh_out>(m);
  structured<Elementwise<at::meta::structured_atanh, "atanh", kInexact>, at::_ops::atanh_out>(m);
  structured<Elementwise<at::meta::structured_sinc, "sinc", kInexact>, at::_ops::sinc_out>(m);
}

} // namespace puone
