// SPDX-License-Identifier: BSD-3-Clause
// "search_sorted": binary search.
#include <stdexcept>
#include <type_traits>

#include "kernels/args/search.h"
#include "kernels/cast.h"
#include "kernels/families/search.h"
#include "kernels/map.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// With fewer values, the search is not split over cores.
constexpr int64_t kSearchGrain = 1 << 10;

template <class T>
class Search {
  using C = std::conditional_t<kIsStorageFloat<T>, float, T>;

 public:
  Search(Launch& launch, const puone_search_sorted_args& args)
      : sequences_(at<T>(launch, args.length == 0 ? nullptr : args.sequences)),
        sorter_(at<int64_t>(launch, args.length == 0 ? nullptr : args.sorter)),
        values_(at<T>(launch, args.values)),
        length_(args.length),
        row_(args.row),
        right_(args.right != 0) {}

  PUONE_FN int64_t operator()(int64_t i) const {
    const int64_t first = row_ == 0 ? 0 : i / row_ * length_;
    const C value = cast<C>(values_[i]);
    int64_t begin = 0, end = length_;
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      const int64_t place = first + (sorter_ == nullptr ? middle : sorter_[first + middle]);
      const C element = cast<C>(sequences_[place]);
      const bool after = right_ ? element > value : element >= value; // always false for NaN
      if (after) {
        end = middle;
      } else {
        begin = middle + 1;
      }
    }
    return begin;
  }

 private:
  template <class Element>
  static const Element* at(Launch& launch, void* address) {
    if (address == nullptr) return nullptr;
    return reinterpret_cast<const Element*>(launch.resolve(address));
  }

  const T* sequences_;
  const int64_t* sorter_;
  const T* values_;
  int64_t length_;
  int64_t row_;
  bool right_;
};

template <class T, class Out>
void searchInto(Launch& launch, const puone_search_sorted_args& args) {
  const Search<T> search(launch, args);
  Out* out = reinterpret_cast<Out*>(launch.resolve(args.out));
  map(
      launch,
      args.n,
      [=] PUONE_DEVICE(int64_t i) { out[i] = static_cast<Out>(search(i)); },
      kSearchGrain);
}

template <class... T>
void searchOf(Launch& launch, const puone_search_sorted_args& args) {
  const auto run = [&]<class Element>(Element) {
    if (args.out_dtype == PUONE_INT64) {
      searchInto<Element, int64_t>(launch, args);
    } else {
      searchInto<Element, int32_t>(launch, args);
    }
  };
  const bool found = ((args.dtype == kDtype<T> && (run(T{}), true)) || ...);
  if (!found) throw std::invalid_argument("the elements have no order");
}

void searchSorted(Launch& launch, const puone_search_sorted_args& args) {
  searchOf<uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double>(launch, args);
}

} // namespace

PUONE_KERNEL(search_sorted) = searchSorted;

} // namespace puone::kernels::PUONE_ISA
