// SPDX-License-Identifier: BSD-3-Clause
// Several values as one, so that one pass over the elements reduces all of them.
#pragma once

#include "kernels/isa.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

template <class... T>
struct Together;
template <class T>
struct Together<T> {
  T first;
};
template <class T, class... Rest>
struct Together<T, Rest...> {
  T first;
  Together<Rest...> rest;
};

template <class T>
PUONE_FN Together<T> together(T value) {
  return {value};
}
template <class T, class... Rest>
PUONE_FN Together<T, Rest...> together(T value, Rest... rest) {
  return {value, together(rest...)};
}

/// Combines two of them, each value by its own function.
template <class... Combine>
struct CombineEach;
template <class Combine>
struct CombineEach<Combine> {
  template <class T>
  PUONE_FN Together<T> operator()(const Together<T>& a, const Together<T>& b) const {
    return {first(a.first, b.first)};
  }
  Combine first;
};
template <class Combine, class... Rest>
struct CombineEach<Combine, Rest...> {
  template <class... T>
  PUONE_FN Together<T...> operator()(const Together<T...>& a, const Together<T...>& b) const {
    return {first(a.first, b.first), rest(a.rest, b.rest)};
  }
  Combine first;
  CombineEach<Rest...> rest;
};

template <class Combine>
PUONE_FN CombineEach<Combine> combineEach(Combine combine) {
  return {combine};
}
template <class Combine, class... Rest>
PUONE_FN CombineEach<Combine, Rest...> combineEach(Combine combine, Rest... rest) {
  return {combine, combineEach(rest...)};
}

} // namespace puone::kernels::PUONE_ISA
