// SPDX-License-Identifier: BSD-3-Clause
// The instructions that the executor knows, by their full names: a name stands for one function.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "program.h"
#include "warp.h"

namespace puone::ptx {

struct Operation {
  Run run = nullptr;
  Flow flow = Flow::kNext;
  /// Widths of destinations, ':' and those of sources: p predicate, h 16 bits, w 32, d 64;
  /// x: any width; *, the last: all lanes take part, and the text does not say so.
  std::string widths;
  uint64_t option = 0; // for Instruction::option
  Known known = Known::kIfAll;
};

using Operations = std::unordered_map<std::string, Operation>;
const Operations& operations();

/// The parts of the table.
void addIntegers(Operations& table);
void addFloats(Operations& table);
void addBits(Operations& table);
void addComparisons(Operations& table);
void addConversions(Operations& table);
void addExchanges(Operations& table);
void addMatrices(Operations& table);
void addCopies(Operations& table);

template <class T>
constexpr char widthOf() {
  if constexpr (std::is_same_v<T, bool>) return 'p';
  if constexpr (sizeof(T) == 2) return 'h';
  if constexpr (sizeof(T) == 4) return 'w';
  return 'd';
}

namespace detail {

/// Result and parameters of a function, or of a lambda without captures.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Result = R;
  using Parameters = std::tuple<A...>;
};
template <class F, class R, class... A>
struct Signature<R (F::*)(A...) const> : Signature<R (*)(A...)> {};

/// Applies a function of one lane's values to each lane.
template <auto kFunction, class R, class Parameters>
struct Lanewise;
template <auto kFunction, class R, class... A>
struct Lanewise<kFunction, R, std::tuple<A...>> {
  template <size_t... I>
  static void each(
      Warp& warp, const Instruction& in, uint32_t mask, std::index_sequence<I...> /*sources*/) {
    const auto to = warp.lanes<R>(in.operand[0]);
    const std::tuple from{warp.lanes<A>(in.operand[1 + I])...};
    forLanes(mask, [&](uint32_t lane) { to.set(lane, kFunction(std::get<I>(from).get(lane)...)); });
  }
  static void run(Warp& warp, const Instruction& in, uint32_t mask) {
    each(warp, in, mask, std::index_sequence_for<A...>{});
  }
  static std::string widths() {
    return {widthOf<R>(), ':', widthOf<A>()...};
  }
};

} // namespace detail

/// The operation that a function of one lane's values makes.
template <auto kFunction>
Operation lanewise() {
  using Signature = detail::Signature<std::remove_cvref_t<decltype(kFunction)>>;
  using Made =
      detail::Lanewise<kFunction, typename Signature::Result, typename Signature::Parameters>;
  return {Made::run, Flow::kNext, Made::widths()};
}

} // namespace puone::ptx
