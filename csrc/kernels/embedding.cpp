// SPDX-License-Identifier: BSD-3-Clause
// "embedding_bag": rows of a table, combined per bag.
#include <algorithm>
#include <stdexcept>

#include "kernels/args/embedding.h"
#include "kernels/blocks.h"
#include "kernels/cast.h"
#include "kernels/families/embedding.h"
#include "kernels/index_check.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace {

template <class T, class Index>
class Bags {
 public:
  Bags(Launch& launch, const puone_embedding_bag_args& args)
      : args_(args),
        check_(launch, "embedding_bag"),
        weight_(launch.resolve(args.weight)),
        indices_(at<Index>(launch, args.indices)),
        offsets_(at<Index>(launch, args.offsets)),
        scales_(at<T>(launch, args.scales)),
        out_(at<T>(launch, args.out)),
        offset2bag_(at<Index>(launch, args.offset2bag)),
        bag_size_(at<Index>(launch, args.bag_size)),
        max_indices_(at<Index>(launch, args.max_indices)) {}

  PUONE_DEVICE void operator()(const Block& block, int64_t bag) const {
    const int64_t begin = offsets_[bag];
    const int64_t end = bag + 1 < args_.offset_count ? offsets_[bag + 1] : args_.index_count;
    if (!check_(end, args_.index_count + 1) || !check_(begin, end + 1)) return;
    const auto add = [](int64_t a, int64_t b) { return a + b; };
    const int64_t refused = block.reduce(
        end - begin,
        int64_t{0},
        [&](int64_t j) {
          offset2bag_[begin + j] = static_cast<Index>(bag);
          return int64_t{check_(indices_[begin + j], args_.rows) ? 0 : 1};
        },
        add);
    if (refused != 0) return;
    const int64_t size = block.reduce(
        end - begin, int64_t{0}, [&](int64_t j) { return int64_t{counts(begin + j)}; }, add);
    block.once([&] { bag_size_[bag] = static_cast<Index>(size); });
    block.each(args_.columns, [&](int64_t column) {
      const int64_t place = bag * args_.columns + column;
      out_[place] = args_.mode == PUONE_BAG_MAX ? maximum(begin, end, column, place)
                                                : sum(begin, end, column, size);
    });
  }

 private:
  using C = std::conditional_t<kIsStorageFloat<T>, float, T>;

  template <class Element>
  static Element* at(Launch& launch, void* address) {
    if (address == nullptr) return nullptr;
    return reinterpret_cast<Element*>(launch.resolve(address));
  }

  PUONE_FN bool counts(int64_t j) const {
    return indices_[j] != args_.padding;
  }

  PUONE_FN C element(int64_t j, int64_t column) const {
    return cast<C>(load<T>(
        weight_ + indices_[j] * args_.weight_strides[0] + column * args_.weight_strides[1]));
  }

  PUONE_FN T sum(int64_t begin, int64_t end, int64_t column, int64_t size) const {
    C total = 0;
    for (int64_t j = begin; j < end; ++j) {
      if (!counts(j)) continue;
      const C value = element(j, column);
      total += scales_ == nullptr ? value : value * cast<C>(scales_[j]);
    }
    if (args_.mode == PUONE_BAG_MEAN && size != 0) total /= static_cast<C>(size);
    return cast<T>(total);
  }

  PUONE_FN T maximum(int64_t begin, int64_t end, int64_t column, int64_t place) const {
    int64_t best = -1;
    for (int64_t j = begin; j < end; ++j) {
      if (counts(j) && (best < 0 || element(j, column) > element(best, column))) best = j;
    }
    max_indices_[place] = best < 0 ? 0 : indices_[best];
    return best < 0 ? cast<T>(C(0)) : cast<T>(element(best, column));
  }

  const puone_embedding_bag_args args_;
  IndexCheck check_;
  const unsigned char* weight_;
  const Index* indices_;
  const Index* offsets_;
  const T* scales_;
  T* out_;
  Index* offset2bag_;
  Index* bag_size_;
  Index* max_indices_;
};

template <class T>
void embeddingBagOf(Launch& launch, const puone_embedding_bag_args& args) {
  const int64_t work = args.columns * (1 + args.index_count / std::max<int64_t>(1, args.bags));
  if (args.index_dtype == PUONE_INT64) {
    blocks(launch, args.bags, work, Bags<T, int64_t>(launch, args));
  } else {
    blocks(launch, args.bags, work, Bags<T, int32_t>(launch, args));
  }
}

void embeddingBag(Launch& launch, const puone_embedding_bag_args& args) {
  switch (args.dtype) {
    case PUONE_FLOAT16:
      return embeddingBagOf<Half>(launch, args);
    case PUONE_BFLOAT16:
      return embeddingBagOf<BFloat16>(launch, args);
    case PUONE_FLOAT32:
      return embeddingBagOf<float>(launch, args);
    case PUONE_FLOAT64:
      return embeddingBagOf<double>(launch, args);
    default:
      throw std::invalid_argument("an embedding bag has floating-point elements");
  }
}

} // namespace

PUONE_KERNEL(embedding_bag) = embeddingBag;

} // namespace puone::kernels::PUONE_ISA
