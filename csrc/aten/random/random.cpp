// SPDX-License-Identifier: BSD-3-Clause
// Random operators. For those that PyTorch implements over a DispatchStub, its own code checks the
// arguments and calls the kernel registered here for this device.

#include "aten/random/random.h"
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/ones_like_ops.h>
#include <ATen/ops/zeros_like_ops.h>
#include <torch/library.h>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>
#include "aten/core/element.h"
#include "aten/core/elementwise.h"
#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "aten/random/random_ops.h"
#include "kernels/args/random.h"
#include "runtime/generator.h"
#include "runtime/stream.h"

namespace puone {

using at::Generator;
using at::Tensor;
using at::TensorBase;
using c10::Scalar;
using c10::ScalarType;
using MaybeGenerator = std::optional<Generator>;

at::TensorIterator inElementOrder(
    std::initializer_list<TensorBase> outputs, std::initializer_list<TensorBase> inputs) {
  at::TensorIteratorConfig config;
  config.enforce_linear_iteration().resize_outputs(false).check_all_same_dtype(false);
  for (const TensorBase& output : outputs) config.add_owned_output(output);
  for (const TensorBase& input : inputs) config.add_owned_const_input(input);
  return config.build();
}

namespace {

// Queues the kernel, whose operands the arguments describe already, with the next numbers.
void draw(
    const RandomKernel& kernel,
    puone_random_args& args,
    c10::DeviceIndex device,
    GeneratorImpl* generator,
    uint64_t numbers) {
  requireType(kernel, static_cast<puone_dtype>(args.elementwise.common));
  const Stream stream = getCurrentStream(device);
  setPosition(args, generator->draw(numbers, stream));
  launchKernel(kernel, args, stream);
}

} // namespace

void launchRandom(
    const RandomKernel& kernel,
    at::TensorIteratorBase& iter,
    ScalarType compute,
    c10::ArrayRef<Scalar> parameters,
    const MaybeGenerator& generator,
    uint64_t numbers) {
  const c10::DeviceIndex device = iter.device(0).index();
  auto* source = generatorOrDefault(generator, device).get<GeneratorImpl>();
  if (iter.numel() == 0) return;
  puone_random_args args{};
  setCompute(args.elementwise, compute, parameters);
  setOperands(args.elementwise, iter);
  draw(kernel, args, device, source, numbers);
}

namespace {

// What numbers of a type are computed in.
ScalarType realCompute(ScalarType type) {
  return type == ScalarType::Double ? type : ScalarType::Float;
}

// Fills a tensor that has elements.
void fillRandomly(
    const RandomKernel& kernel,
    const TensorBase& self,
    ScalarType compute,
    c10::ArrayRef<Scalar> parameters,
    const MaybeGenerator& generator) {
  if (!self.is_contiguous()) {
    auto iter = inElementOrder({self});
    return launchRandom(kernel, iter, compute, parameters, generator);
  }
  // The usual case needs no iterator.
  puone_random_args args{};
  args.elementwise.ndim = 1;
  args.elementwise.sizes[0] = self.numel();
  args.elementwise.dtypes[0] = *kernelDtype(self.scalar_type());
  args.elementwise.operands[0].data = self.data_ptr();
  args.elementwise.operands[0].strides[0] = self.itemsize();
  setCompute(args.elementwise, compute, parameters);
  const c10::DeviceIndex device = self.device().index();
  draw(kernel, args, device, generatorOrDefault(generator, device).get<GeneratorImpl>(), 4);
}

// Whether the kernels compute in it; not so float8.
bool isReal(ScalarType type) {
  return c10::isFloatingType(type) && isComputable(type);
}

void checkReal(const char* name, ScalarType type) {
  TORCH_CHECK_NOT_IMPLEMENTED(isReal(type), "\"", name, "\" not implemented for '", type, "'");
}

void checkOrdered(const char* name, ScalarType type) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      kernelDtype(type) && !c10::isComplexType(type),
      "\"",
      name,
      "\" not implemented for '",
      type,
      "'");
}

// body(T{}) for the floating-point type T of that name.
template <class Body>
auto withReal(ScalarType type, const Body& body) {
  return AT_DISPATCH_FLOATING_TYPES_AND2(
      ScalarType::Half, ScalarType::BFloat16, type, "random", [&] { return body(scalar_t{}); });
}

// The largest number of T below `value`, itself one of T and finite.
template <class T>
T before(T value) {
  using Bits = std::
      conditional_t<sizeof(T) == 2, int16_t, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  if (value == T(0)) return -std::numeric_limits<T>::denorm_min();
  const auto bits = std::bit_cast<Bits>(value);
  return std::bit_cast<T>(static_cast<Bits>(bits < 0 ? bits + 1 : bits - 1));
}

double smallest(ScalarType type) {
  return withReal(type, [](auto t) {
    return static_cast<double>(std::numeric_limits<decltype(t)>::denorm_min());
  });
}

// ---- kernels behind PyTorch's own operators ----------------------------------------------------

void uniformKernel(at::TensorIteratorBase& iter, double from, double to, MaybeGenerator generator) {
  const ScalarType type = iter.dtype();
  const auto [first, end, last] = withReal(type, [&](auto t) {
    using T = decltype(t);
    const T first = static_cast<T>(from), end = static_cast<T>(to);
    const T last = first < end ? before(end) : first;
    return std::tuple<double, double, double>(first, end, last);
  });
  fillRandomly(
      kernel::uniform,
      iter.tensor_base(0),
      realCompute(type),
      {first, end - first, last},
      generator);
}

void normalKernel(const TensorBase& self, double mean, double deviation, MaybeGenerator generator) {
  checkReal("normal", self.scalar_type());
  fillRandomly(kernel::normal, self, realCompute(self.scalar_type()), {mean, deviation}, generator);
}

void logNormalKernel(
    at::TensorIteratorBase& iter, double mean, double deviation, MaybeGenerator generator) {
  checkReal("log_normal", iter.dtype());
  fillRandomly(
      kernel::log_normal,
      iter.tensor_base(0),
      realCompute(iter.dtype()),
      {mean, deviation},
      generator);
}

// Never zero or infinite in the output's type, but for the rate that says so.
void exponentialKernel(at::TensorIteratorBase& iter, double rate, MaybeGenerator generator) {
  const ScalarType type = iter.dtype();
  TORCH_CHECK(
      c10::isFloatingType(type),
      "Exponential distribution is a continuous probability distribution. dtype must be a floating "
      "point but you specified ",
      type);
  checkReal("exponential", type);
  const double low = std::isinf(rate) ? 0 : smallest(type);
  fillRandomly(
      kernel::exponential,
      iter.tensor_base(0),
      realCompute(type),
      {1 / rate, low, largestFinite(type)},
      generator);
}

void cauchyKernel(
    at::TensorIteratorBase& iter, double median, double sigma, MaybeGenerator generator) {
  const ScalarType type = iter.dtype();
  checkReal("cauchy", type);
  fillRandomly(
      kernel::cauchy,
      iter.tensor_base(0),
      realCompute(type),
      {median, sigma, largestFinite(type)},
      generator);
}

// The largest number of an integral type, or for 64 bits the largest double below its end.
double largestInteger(ScalarType type) {
  const int bits = static_cast<int>(c10::elementSize(type)) * 8 - (c10::isSignedType(type) ? 1 : 0);
  const double end = std::ldexp(1.0, bits);
  return bits > 53 ? before(end) : end - 1;
}

void geometricKernel(at::TensorIteratorBase& iter, double p, MaybeGenerator generator) {
  const ScalarType type = iter.dtype();
  checkOrdered("geometric", type);
  TORCH_CHECK_NOT_IMPLEMENTED(
      type != ScalarType::Bool, "\"geometric\" not implemented for '", type, "'");
  const bool real = c10::isFloatingType(type);
  fillRandomly(
      kernel::geometric,
      iter.tensor_base(0),
      real ? realCompute(type) : ScalarType::Double,
      {1 / std::log1p(-p), real ? largestFinite(type) : largestInteger(type)},
      generator);
}

void randomFromToKernel(
    at::TensorIteratorBase& iter, uint64_t range, int64_t from, MaybeGenerator generator) {
  checkOrdered("random_", iter.dtype());
  fillRandomly(
      kernel::random,
      iter.tensor_base(0),
      ScalarType::Long,
      {from, static_cast<int64_t>(range)},
      generator);
}

void randomFullRangeKernel(at::TensorIteratorBase& iter, MaybeGenerator generator) {
  randomFromToKernel(iter, 0, 0, generator);
}

// As many numbers from 0 on as the type has, or can tell apart.
void randomKernel(at::TensorIteratorBase& iter, MaybeGenerator generator) {
  const ScalarType type = iter.dtype();
  checkOrdered("random_", type);
  uint64_t range = 2;
  if (c10::isFloatingType(type)) {
    range = (uint64_t{1} << withReal(
                 type, [](auto t) { return std::numeric_limits<decltype(t)>::digits; })) +
            1;
  } else if (type != ScalarType::Bool) {
    const auto bits = c10::elementSize(type) * 8 - (c10::isSignedType(type) ? 1 : 0);
    range = bits == 64 ? 0 : uint64_t{1} << bits;
  }
  randomFromToKernel(iter, range, 0, generator);
}

void bernoulliTensorKernel(const TensorBase& self, const TensorBase& p, MaybeGenerator generator) {
  checkReal("bernoulli_tensor_p_", p.scalar_type());
  checkOrdered("bernoulli_", self.scalar_type());
  const at::OptionalTensorRef out(self), given(p);
  const Tensor here = given->to(self.device());
  auto iter = inElementOrder({self}, {*at::expand_inplace(*out, here, "bernoulli_")});
  launchRandom(kernel::bernoulli, iter, realCompute(p.scalar_type()), {}, generator);
}

void bernoulliScalarKernel(const TensorBase& self, double p, MaybeGenerator generator) {
  checkOrdered("bernoulli_", self.scalar_type());
  fillRandomly(kernel::bernoulli_scalar, self, ScalarType::Float, {p}, generator);
}

// ---- operators of their own --------------------------------------------------------------------

Tensor newLike(const Tensor& self, ScalarType dtype) {
  const auto options = self.options().dtype(dtype);
  if (self.is_contiguous()) return newResult(self.sizes(), {}, options);
  return newResult(self.sizes(), at::infer_dense_strides(self.sizes(), self.strides()), options);
}

std::tuple<Tensor, Tensor> nativeDropout(const Tensor& self, double p, std::optional<bool> train) {
  const auto mask_of = [&](auto like) {
    return like(self, ScalarType::Bool, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  };
  if (!train.value_or(true)) return {self.clone(), mask_of(at::_ops::ones_like::call)};
  TORCH_CHECK(0 <= p && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 1) {
    Tensor zeros = newLike(self, self.scalar_type());
    return {zeros.zero_(), mask_of(at::_ops::zeros_like::call)};
  }
  if (!isReal(self.scalar_type())) {
    Tensor kept = newLike(self, ScalarType::Bool).bernoulli_(1 - p);
    return {self.mul(kept).mul_(1 / (1 - p)), kept};
  }
  Tensor out = newLike(self, self.scalar_type());
  Tensor mask = newLike(self, ScalarType::Bool);
  auto iter = inElementOrder({out, mask}, {self});
  launchRandom(kernel::dropout, iter, self.scalar_type(), {1 - p, 1 / (1 - p)}, std::nullopt);
  return {out, mask};
}

Tensor nativeDropoutBackward(const Tensor& gradient, const Tensor& mask, double scale) {
  TORCH_CHECK(
      mask.scalar_type() == ScalarType::Bool,
      "Mask should be Bool Scalar Type",
      mask.scalar_type());
  const ScalarType type = gradient.scalar_type();
  if (!isReal(type)) return gradient.mul(mask.to(type).mul(scale)); // integers are promoted
  Tensor result = newLike(gradient, gradient.scalar_type());
  auto iter = at::TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .add_output(result)
                  .add_const_input(gradient)
                  .add_const_input(mask)
                  .build();
  launchElementwise(kernel::dropout_backward, iter, gradient.scalar_type(), {scale});
  return result;
}

Tensor& rreluWithNoiseOut(
    const Tensor& self,
    Tensor& noise,
    const Scalar& lower,
    const Scalar& upper,
    bool training,
    MaybeGenerator generator,
    Tensor& out) {
  TORCH_CHECK(
      self.sizes() == noise.sizes(),
      "noise tensor shape must match self tensor shape. Got self.shape = ",
      self.sizes(),
      " noise.shape = ",
      noise.sizes());
  const double from = lower.toDouble(), to = upper.toDouble();
  if (!training) return at::_ops::leaky_relu_out::call(self, (from + to) / 2, out);
  checkReal("rrelu_with_noise", self.scalar_type());
  at::native::resize_output(out, self.sizes());
  auto iter = inElementOrder({out, noise}, {self});
  launchRandom(kernel::rrelu, iter, self.scalar_type(), {from, to - from}, generator);
  return out;
}

Tensor rreluWithNoise(
    const Tensor& self,
    Tensor& noise,
    const Scalar& lower,
    const Scalar& upper,
    bool training,
    MaybeGenerator generator) {
  Tensor out = newLike(self, self.scalar_type());
  return rreluWithNoiseOut(self, noise, lower, upper, training, std::move(generator), out);
}

Tensor& rreluWithNoiseInplace(
    Tensor& self,
    Tensor& noise,
    const Scalar& lower,
    const Scalar& upper,
    bool training,
    MaybeGenerator generator) {
  return rreluWithNoiseOut(self, noise, lower, upper, training, std::move(generator), self);
}

} // namespace
} // namespace puone

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_scalar_stub, &puone::bernoulliScalarKernel)
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_tensor_stub, &puone::bernoulliTensorKernel)
REGISTER_PRIVATEUSE1_DISPATCH(cauchy_stub, &puone::cauchyKernel)
REGISTER_PRIVATEUSE1_DISPATCH(exponential_stub, &puone::exponentialKernel)
REGISTER_PRIVATEUSE1_DISPATCH(geometric_stub, &puone::geometricKernel)
REGISTER_PRIVATEUSE1_DISPATCH(log_normal_stub, &puone::logNormalKernel)
REGISTER_PRIVATEUSE1_DISPATCH(normal_stub, &puone::normalKernel)
REGISTER_PRIVATEUSE1_DISPATCH(random_from_to_stub, &puone::randomFromToKernel)
REGISTER_PRIVATEUSE1_DISPATCH(random_full_64_bits_range_stub, &puone::randomFullRangeKernel)
REGISTER_PRIVATEUSE1_DISPATCH(random_stub, &puone::randomKernel)
REGISTER_PRIVATEUSE1_DISPATCH(uniform_stub, &puone::uniformKernel)
} // namespace at::native

#include "aten/random/random_registrations.inc"
