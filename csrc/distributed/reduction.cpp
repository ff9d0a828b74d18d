// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/reduction.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/view_as_real.h>

namespace puone::distributed {
namespace {

using c10d::ReduceOp;
using Op = ReduceOp::RedOpType;

bool isBitwise(Op op) {
  return op == Op::BAND || op == Op::BOR || op == Op::BXOR;
}

bool isOrdering(Op op) {
  return op == Op::MIN || op == Op::MAX;
}

const char* nameOf(Op op) {
  switch (op) {
    case Op::SUM:
      return "SUM";
    case Op::AVG:
      return "AVG";
    case Op::PRODUCT:
      return "PRODUCT";
    case Op::MIN:
      return "MIN";
    case Op::MAX:
      return "MAX";
    case Op::BAND:
      return "BAND";
    case Op::BOR:
      return "BOR";
    case Op::BXOR:
      return "BXOR";
    case Op::PREMUL_SUM:
      return "PREMUL_SUM";
    case Op::UNUSED:
      return "UNUSED";
  }
  return "an unknown operation";
}

// Truth values are 0 and 1: a sum of them says whether one is true, as with NCCL.
Op onTruthValues(Op op) {
  switch (op) {
    case Op::SUM:
    case Op::MAX:
    case Op::BOR:
      return Op::MAX;
    case Op::PRODUCT:
    case Op::MIN:
    case Op::BAND:
      return Op::MIN;
    default:
      return op;
  }
}

// Gloo computes in 8, 32 and 64 bits. A wider type wraps around as the narrower one does, once it
// is cast back. kUndefined: none.
at::ScalarType computedIn(at::ScalarType type, Op op) {
  switch (type) {
    case at::kHalf:
    case at::kBFloat16:
    case at::kFloat:
    case at::kDouble:
    case at::kByte:
    case at::kChar:
    case at::kInt:
    case at::kLong:
      return type;
    case at::kBool:
      return at::kByte;
    case at::kShort:
    case at::kUInt16:
      return at::kInt;
    case at::kUInt32:
      return at::kLong;
    case at::kUInt64: // the bits of a sum do not depend on the sign, the order does
      return isOrdering(op) ? at::ScalarType::Undefined : at::kLong;
    default:
      return at::ScalarType::Undefined;
  }
}

at::Tensor factorOf(const ReduceOp& op) {
  const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr, "pccl: PREMUL_SUM without a factor");
  return supplement->tensor_factor.defined() ? supplement->tensor_factor
                                             : at::scalar_tensor(supplement->double_factor);
}

} // namespace

Reduction planReduction(const ReduceOp& op, at::ScalarType type) {
  const Op asked = op.op_;
  const bool is_real = at::isFloatingType(type);
  const bool is_complex = at::isComplexType(type);
  const auto require = [&](bool allowed) {
    TORCH_CHECK_VALUE(
        allowed, "pccl: ReduceOp.", nameOf(asked), " is not defined for ", at::toString(type));
  };
  Reduction reduction{asked, type};
  reduction.average = asked == Op::AVG;
  reduction.as_real = is_complex;
  if (reduction.average || asked == Op::PREMUL_SUM) {
    require(is_real || is_complex);
    reduction.op = Op::SUM;
    if (asked == Op::PREMUL_SUM) reduction.factor = factorOf(op);
  }
  if (isBitwise(asked)) require(!is_real && !is_complex);
  if (is_complex) require(reduction.op == Op::SUM);
  if (type == at::kBool) reduction.op = onTruthValues(asked);
  reduction.type = computedIn(is_complex ? c10::toRealValueType(type) : type, reduction.op);
  TORCH_CHECK_NOT_IMPLEMENTED(
      reduction.type != at::ScalarType::Undefined,
      "pccl: ReduceOp.",
      nameOf(asked),
      " of ",
      at::toString(type),
      " is not supported");
  return reduction;
}

at::Tensor reductionInput(const Reduction& reduction, const at::Tensor& tensor) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  at::Tensor input = tensor;
  if (reduction.factor) input = at::mul(input, reduction.factor->to(tensor.scalar_type()));
  return reductionOutput(reduction, input);
}

at::Tensor reductionOutput(const Reduction& reduction, const at::Tensor& tensor) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return reduction.as_real ? at::view_as_real(tensor) : tensor;
}

void finishReduction(const Reduction& reduction, const at::Tensor& host, int ranks) {
  if (reduction.average) host.div_(ranks);
}

} // namespace puone::distributed
