// SPDX-License-Identifier: BSD-3-Clause
// Random numbers on a device: one thread per Philox block, for all elements that share it.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "kernels/elementwise.h"
#include "kernels/random.h"
#include "kernels/simt/elementwise.h"
#include "kernels/simt/map.h"
#include "kernels/simt/strided.h"
#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA::drawing {

/// The Philox blocks of a launch.
struct Source {
  Position position;

  template <class Draw>
  PUONE_DEVICE void draw(int64_t group, Draw* draws) const {
    split(philox(position.counter(), static_cast<uint64_t>(group), position.seed()), draws);
  }
  PUONE_DEVICE void draw(int64_t element, Drawer* draws) const {
    draws[0] = {position.seed(), position.counter(), static_cast<uint64_t>(element)};
  }
};

/// A functor and its operands.
template <class F, int kAll>
struct Task {
  F f;
  Source source;
  DeviceError refusal;
  detail::ElementOperands<kAll> operands;

  template <class Draw, class... In>
  PUONE_DEVICE auto evaluate(const Draw& draw, In... in) const {
    if constexpr (requires { F::kRefusal; }) {
      if (!F::accepts(in...)) refusal.raise();
    }
    return f(draw, in...);
  }
};

// ---- any strides, any types ----

template <class F, int kAll>
struct AnyGroups {
  using Types = detail::Signature<decltype(&F::operator())>;
  using Draw = std::tuple_element_t<0, typename Types::In>;
  static constexpr int64_t kGroup = kPerBlock<Draw>;

  PUONE_DEVICE void operator()(int64_t thread) const {
    const int64_t group = first / kGroup + thread;
    Draw draws[kGroup];
    task.source.draw(group, draws);
    for (int64_t e = 0; e < kGroup; ++e) {
      const int64_t i = group * kGroup + e - first;
      if (i < 0 || i >= n) continue;
      unsigned char* at[kAll];
      addresses.at(static_cast<uint32_t>(i), at);
      element(
          draws[e],
          at,
          static_cast<const typename Types::In*>(nullptr),
          std::make_index_sequence<std::tuple_size_v<typename Types::In> - 1>());
    }
  }

  template <class D, class... In, size_t... kIn>
  PUONE_DEVICE void element(
      const D& draw,
      unsigned char* const* at,
      const std::tuple<D, In...>* /*types*/,
      std::index_sequence<kIn...> /*inputs*/) const {
    const auto& operands = task.operands.all;
    constexpr int kOuts = std::tuple_size_v<typename Types::Out>;
    const auto result =
        task.evaluate(draw, detail::readElement<In>(operands[kOuts + kIn], at[kOuts + kIn])...);
    if constexpr (kOuts == 2) {
      detail::writeElement(operands[0], at[0], result.first);
      detail::writeElement(operands[1], at[1], result.second);
    } else {
      detail::writeElement(operands[0], at[0], result);
    }
  }

  Task<F, kAll> task;
  ElementAddresses<kAll> addresses;
  int64_t first, n; // the first element's number; the number of elements
};

// ---- dense operands ----

/// The elements of one thread, in memory and in registers.
template <class T, int64_t kGroup>
struct alignas(sizeof(T) * kGroup < 16 ? sizeof(T) * kGroup : 16) Group {
  T elements[kGroup];
};

template <class T, int64_t kGroup>
PUONE_DEVICE Group<T, kGroup> readGroup(const detail::ElementOperand& operand, int64_t group) {
  Group<T, kGroup> result;
  detail::withStored<T>(operand, [&]<class Stored>(Stored) {
    const auto in = reinterpret_cast<const Group<Stored, kGroup>*>(operand.data)[group];
    PUONE_UNROLL
    for (int64_t e = 0; e < kGroup; ++e) result.elements[e] = cast<T>(in.elements[e]);
  });
  return result;
}

template <class T, int64_t kGroup>
PUONE_DEVICE void writeGroup(
    const detail::ElementOperand& operand, int64_t group, const Group<T, kGroup>& value) {
  detail::withStored<T>(operand, [&]<class Stored>(Stored) {
    Group<Stored, kGroup> out;
    PUONE_UNROLL
    for (int64_t e = 0; e < kGroup; ++e) out.elements[e] = cast<Stored>(value.elements[e]);
    reinterpret_cast<Group<Stored, kGroup>*>(operand.data)[group] = out;
  });
}

template <class F, int kAll>
struct DenseGroups {
  using Types = detail::Signature<decltype(&F::operator())>;
  using Draw = std::tuple_element_t<0, typename Types::In>;
  static constexpr int64_t kGroup = kPerBlock<Draw>;

  PUONE_DEVICE void operator()(int64_t group) const {
    read(
        group,
        static_cast<const typename Types::In*>(nullptr),
        std::make_index_sequence<std::tuple_size_v<typename Types::In> - 1>());
  }

  template <class D, class... In, size_t... kIn>
  PUONE_DEVICE void read(
      int64_t group,
      const std::tuple<D, In...>* /*types*/,
      std::index_sequence<kIn...> /*inputs*/) const {
    constexpr int kOuts = std::tuple_size_v<typename Types::Out>;
    write(group, readGroup<In, kGroup>(task.operands.all[kOuts + kIn], group)...);
  }

  template <class... In>
  PUONE_DEVICE void write(int64_t group, const Group<In, kGroup>&... in) const {
    Draw draws[kGroup];
    task.source.draw(group, draws);
    using Out = typename Types::Out;
    if constexpr (std::tuple_size_v<Out> == 2) {
      Group<std::tuple_element_t<0, Out>, kGroup> a;
      Group<std::tuple_element_t<1, Out>, kGroup> b;
      PUONE_UNROLL
      for (int64_t e = 0; e < kGroup; ++e) {
        const auto result = task.evaluate(draws[e], in.elements[e]...);
        a.elements[e] = result.first;
        b.elements[e] = result.second;
      }
      writeGroup(task.operands.all[0], group, a);
      writeGroup(task.operands.all[1], group, b);
    } else {
      Group<std::tuple_element_t<0, Out>, kGroup> out;
      PUONE_UNROLL
      for (int64_t e = 0; e < kGroup; ++e) {
        out.elements[e] = task.evaluate(draws[e], in.elements[e]...);
      }
      writeGroup(task.operands.all[0], group, out);
    }
  }

  Task<F, kAll> task;
};

// ---- the launch ----

template <int kAll>
bool isDense(const LoopNest<kAll>& nest, const detail::ElementOperands<kAll>& operands) {
  if (nest.ndim > 1 || nest.elements() < detail::kDenseLeast) return false;
  for (int o = 0; o < kAll; ++o) {
    const detail::ElementOperand& operand = operands.all[o];
    const bool aligned = reinterpret_cast<uintptr_t>(operand.data) % 16 == 0;
    if (nest.stride(o) != operand.size || !aligned) return false;
  }
  return true;
}

template <class F, class... T, size_t... kOperand>
void run(
    Launch& launch,
    const puone_random_args& args,
    const std::tuple<T...>* /*outputs, then inputs*/,
    std::index_sequence<kOperand...> /*operands*/) {
  constexpr int kAll = sizeof...(T);
  using Any = AnyGroups<F, kAll>;
  constexpr int64_t kGroup = Any::kGroup;
  const puone_elementwise_args& elements = args.elementwise;
  Task<F, kAll> task{
      detail::functor<F>(elements.parameters), {Position(launch, args)}, refusalOf<F>(launch), {}};
  for (int o = 0; o < kAll; ++o) {
    detail::ElementOperand& operand = task.operands.all[o];
    operand.data = launch.resolve(elements.operands[o].data);
    operand.dtype = elements.dtypes[o];
    operand.via = -1;
    operand.size = elementSize(operand.dtype);
  }
  LoopNest<kAll> nest =
      loopNest<kAll>(launch, elements.ndim, elements.sizes, {&elements.operands[kOperand]...});
  int64_t done = 0;
  if constexpr (kGroup > 1) {
    const auto& all = task.operands.all;
    if ((detail::canVectorize(all[kOperand], kDtype<T>) && ...) && isDense(nest, task.operands)) {
      const int64_t groups = nest.elements() / kGroup;
      map(launch, groups, DenseGroups<F, kAll>{task});
      done = groups * kGroup;
      nest.skip(done);
    }
  }
  forPieces(
      nest,
      [&](const LoopNest<kAll>& piece, int64_t first) {
        const int64_t n = piece.elements();
        const int64_t groups = (first + n - 1) / kGroup - first / kGroup + 1;
        map(launch, groups, Any{task, ElementAddresses<kAll>(piece), first, n});
      },
      done);
}

template <class F>
void randomOf(Launch& launch, const puone_random_args& args) {
  using Types = detail::Signature<decltype(&F::operator())>;
  using Inputs = decltype([]<class Draw, class... In>(const std::tuple<Draw, In...>*) {
    return std::tuple<In...>();
  }(static_cast<const typename Types::In*>(nullptr)));
  using All = decltype(std::tuple_cat(std::declval<typename Types::Out>(), Inputs()));
  run<F>(
      launch,
      args,
      static_cast<const All*>(nullptr),
      std::make_index_sequence<std::tuple_size_v<All>>());
}

} // namespace puone::kernels::PUONE_ISA::drawing
