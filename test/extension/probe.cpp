// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>
#include <torch_puone/extension.h>

namespace {

using at::Tensor;
using namespace puone::extension;

Tensor scale(const Tensor& x, int64_t shift, double factor) {
  static const Kernel kernel("scale");
  Tensor out = at::empty_like(x);
  kernel.map(x.numel(), {read(x), write(out), shift, factor});
  return out;
}

void beyond(const Tensor& out) {
  static const Kernel kernel("beyond");
  kernel.map(1, {write(out)});
}

Tensor pick(const Tensor& x, const Tensor& at) {
  static const Kernel kernel("pick", {"place {} of {} was asked for"});
  Tensor out = at::empty(at.sizes(), x.options());
  kernel.map(at.numel(), {read(x), read(at), write(out)});
  return out;
}

Tensor sums(const Tensor& x) {
  static const Kernel kernel("sums");
  Tensor out = at::empty({x.size(0)}, x.options());
  kernel.blocks(x.size(0), x.size(1), {read(x), write(out), x.size(1)});
  return out;
}

void undefined(const Tensor& x) {
  static const Kernel kernel("scale");
  kernel.map(1, {read(x), write(Tensor()), 0, 1.0});
}

void fill(const Tensor& out, double value) {
  static const Kernel kernel("fill");
  kernel.map(out.numel(), {write(out), value});
}

void throwing(const Tensor& out, double from) {
  static const Kernel kernel("throwing");
  kernel.map(out.numel(), {write(out), from});
}

void unknown(const Tensor& x) {
  static const Kernel kernel("unknown");
  kernel.map(1, {read(x)});
}

} // namespace

TORCH_LIBRARY(probe, m) {
  m.def("scale(Tensor x, int shift, float factor) -> Tensor", scale);
  m.def("beyond(Tensor out) -> ()", beyond);
  m.def("pick(Tensor x, Tensor at) -> Tensor", pick);
  m.def("sums(Tensor x) -> Tensor", sums);
  m.def("undefined(Tensor x) -> ()", undefined);
  m.def("fill(Tensor out, float value) -> ()", fill);
  m.def("throwing(Tensor out, float from) -> ()", throwing);
  m.def("unknown(Tensor x) -> ()", unknown);
}
