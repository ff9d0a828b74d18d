// SPDX-License-Identifier: BSD-3-Clause
// Error functions, gamma functions and the like.
#include <ATen/ops/digamma_meta.h>
#include <ATen/ops/digamma_ops.h>
#include <ATen/ops/erf_meta.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/erfc_meta.h>
#include <ATen/ops/erfc_ops.h>
#include <ATen/ops/erfinv_meta.h>
#include <ATen/ops/erfinv_ops.h>
#include <ATen/ops/lgamma_meta.h>
#include <ATen/ops/lgamma_ops.h>
#include <ATen/ops/special_entr_meta.h>
#include <ATen/ops/special_entr_ops.h>
#include <ATen/ops/special_zeta_meta.h>
#include <ATen/ops/special_zeta_ops.h>
#include <torch/library.h>

#include "aten/core/elementwise.h"

namespace puone {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<Elementwise<at::meta::structured_erf, "erf", kRealTypes>, at::_ops::erf_out>(m);
  structured<Elementwise<at::meta::structured_erfc, "erfc", kRealTypes>, at::_ops::erfc_out>(m);
  structured<Elementwise<at::meta::structured_erfinv, "erfinv", kRealTypes>, at::_ops::erfinv_out>(
      m);
  structured<Elementwise<at::meta::structured_lgamma, "lgamma", kRealTypes>, at::_ops::lgamma_out>(
      m);
  structured<
      Elementwise<at::meta::structured_digamma, "digamma", kRealTypes>,
      at::_ops::digamma_out>(m);
  structured<
      Elementwise<at::meta::structured_special_entr, "special_entr", kRealTypes>,
      at::_ops::special_entr_out>(m);
  using Zeta = Elementwise<at::meta::structured_special_zeta, "zeta", kRealTypes>;
  structured<Zeta, at::_ops::special_zeta_out>(m);
}

} // namespace puone
