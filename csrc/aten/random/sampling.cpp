// SPDX-License-Identifier: BSD-3-Clause
// Random operators that do not fill a tensor element by element with a fixed number of draws:
// multinomial, randperm; and those that draw until a number is accepted.
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/UnaryOps.h>
#include <torch/library.h>

#include <limits>
#include <optional>
#include <utility>

#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "aten/core/output.h"
#include "aten/random/random.h"
#include "aten/random/sampling_ops.h"
#include "kernels/args/sampling.h"
#include "runtime/generator.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::ScalarType;
using MaybeGenerator = std::optional<at::Generator>;

// Numbers of 32 bits reserved for an element that draws until it is satisfied: 64 blocks, the bound
// the kernels keep (csrc/kernels/sampling.cpp).
constexpr uint64_t kUntilAccepted = 256;

template <class Args>
void launchWithNumbers(
    const kernel::Kernel<Args>& kernel,
    Args& args,
    const MaybeGenerator& generator,
    c10::DeviceIndex device) {
  const Stream stream = getCurrentStream(device);
  auto* const source = generatorOrDefault(generator, device).get<GeneratorImpl>();
  setPosition(args, source->draw(4, stream));
  launchKernel(kernel, args, stream);
}

// PyTorch has checked the arguments and resized the result.
void multinomialKernel(
    Tensor& result, const Tensor& self, int64_t samples, MaybeGenerator generator) {
  TORCH_CHECK(self.size(-1) > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
  const Tensor weights = self.to(ScalarType::Double, /*non_blocking=*/false, /*copy=*/true);
  const Tensor sums = weights.contiguous();
  const Tensor out =
      result.is_contiguous() ? result : newResult(result.sizes(), {}, result.options());
  puone_multinomial_args args{};
  args.categories = self.size(-1);
  args.rows = self.numel() / args.categories;
  args.samples = samples;
  args.weights = outputData(sums);
  args.out = outputData(out);
  launchWithNumbers(kernel::multinomial, args, generator, self.device().index());
  if (!out.is_same(result)) result.copy_(out);
}

Tensor& randpermOut(int64_t n, MaybeGenerator generator, Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  TORCH_CHECK(
      !generator || !generator->defined() || generator->device().type() == out.device().type(),
      "Expected a '",
      out.device().type(),
      "' generator device but found '",
      generator->device().type(),
      "'");
  at::native::check_supported_max_int_with_precision(n, out);
  out.resize_({n});
  if (n == 0) return out;
  const bool direct = out.scalar_type() == ScalarType::Long && out.is_contiguous();
  const Tensor order =
      direct ? out : newResult(out.sizes(), {}, out.options().dtype(ScalarType::Long));
  puone_randperm_args args{};
  args.n = n;
  args.out = outputData(order);
  launchWithNumbers(kernel::randperm, args, generator, out.device().index());
  if (!direct) out.copy_(order);
  return out;
}

void checkReal(const char* name, const Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.is_floating_point() && isComputable(tensor.scalar_type()),
      "\"",
      name,
      "\" not implemented for '",
      tensor.scalar_type(),
      "'");
}

Tensor poisson(const Tensor& self, MaybeGenerator generator) {
  checkReal("poisson", self);
  Tensor out = newResult(self.sizes(), {}, self.options());
  auto iter = inElementOrder({out}, {self});
  launchRandom(kernel::poisson, iter, ScalarType::Double, {}, generator, kUntilAccepted);
  return out;
}

Tensor binomial(const Tensor& count, const Tensor& prob, MaybeGenerator generator) {
  for (const auto& [name, given] : {std::pair("count", count), std::pair("prob", prob)}) {
    TORCH_CHECK_VALUE(
        given.is_floating_point(),
        "binomial only supports floating-point dtypes for ",
        name,
        ", got: ",
        given.scalar_type());
  }
  checkReal("binomial", count);
  TORCH_CHECK(
      count.scalar_type() == prob.scalar_type(),
      "Found dtype ",
      prob.scalar_type(),
      " but expected ",
      count.scalar_type());
  Tensor out = newResult(at::infer_size(count.sizes(), prob.sizes()), {}, count.options());
  auto iter = inElementOrder({out}, {count, prob});
  launchRandom(kernel::binomial, iter, ScalarType::Double, {}, generator, kUntilAccepted);
  return out;
}

// Into `out`, of any floating-point dtype; no number is below `low`.
void drawGamma(
    const Tensor& out, const Tensor& shape, double low, const MaybeGenerator& generator) {
  auto iter = inElementOrder({out}, {shape});
  launchRandom(kernel::standard_gamma, iter, ScalarType::Double, {low}, generator, kUntilAccepted);
}

double smallestNormal(ScalarType type) {
  return AT_DISPATCH_FLOATING_TYPES_AND2(
      ScalarType::Half, ScalarType::BFloat16, type, "standard_gamma", [] {
        return static_cast<double>(std::numeric_limits<scalar_t>::min());
      });
}

Tensor standardGamma(const Tensor& self, MaybeGenerator generator) {
  checkReal("gamma", self);
  Tensor out = newResult(self.sizes(), {}, self.options());
  drawGamma(out, self, smallestNormal(self.scalar_type()), generator);
  return out;
}

// Gamma numbers as parts of their sum.
Tensor sampleDirichlet(const Tensor& self, MaybeGenerator generator) {
  checkReal("dirichlet", self);
  const Tensor gamma = newResult(self.sizes(), {}, self.options().dtype(ScalarType::Double));
  drawGamma(gamma, self, 0, generator);
  const Tensor parts = gamma.div(gamma.sum(-1, /*keepdim=*/true));
  const double most = 1 - std::numeric_limits<double>::epsilon() / 2;
  return parts.clamp(smallestNormal(self.scalar_type()), most).to(self.scalar_type());
}

} // namespace
} // namespace puone

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(multinomial_with_replacement_stub, &puone::multinomialKernel)
} // namespace at::native

#include "aten/random/sampling_registrations.inc"
