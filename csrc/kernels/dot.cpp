// SPDX-License-Identifier: BSD-3-Clause
// "dot": the sum of the products of two vectors.
#include <algorithm>

#include "kernels/args/matmul.h"
#include "kernels/compute.h"
#include "kernels/entry.h"
#include "kernels/families.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// The vectors are cut into at most this many chunks, of at least this many elements.
constexpr int64_t kChunks = 256;
constexpr int64_t kChunk = 16 << 10;
/// Sums kept side by side, so that the loop over them is a vector operation.
constexpr int kSums = 32;

template <class E>
class Dot {
  using Value = ComputeValue<E>;

 public:
  Dot(Launch& launch, const puone_dot_args& args)
      : n_(args.n),
        a_(args.n > 0 ? launch.resolve(args.a) : nullptr), // no elements, no memory
        b_(args.n > 0 ? launch.resolve(args.b) : nullptr),
        a_stride_(args.a_stride),
        b_stride_(args.b_stride),
        a_conj_(args.a_conj != 0),
        b_conj_(args.b_conj != 0) {}

  E run(Launch& launch) const {
    const int64_t chunk = std::max(kChunk, (n_ + kChunks - 1) / kChunks);
    const int64_t chunks = (n_ + chunk - 1) / chunk;
    Value partial[kChunks];
    launch.forRanges(chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        partial[i] = sum(i * chunk, std::min(chunk, n_ - i * chunk));
      }
    });
    Value total{};
    for (int64_t i = 0; i < chunks; ++i) total = plus(total, partial[i]);
    return cast<E>(total);
  }

 private:
  Value sum(int64_t begin, int64_t n) const {
    const unsigned char* a = a_ + begin * a_stride_;
    const unsigned char* b = b_ + begin * b_stride_;
    if (a_stride_ == sizeof(E) && b_stride_ == sizeof(E)) return sum(a, sizeof(E), b, sizeof(E), n);
    return sum(a, a_stride_, b, b_stride_, n);
  }

  [[gnu::always_inline]] inline Value sum(
      const unsigned char* a,
      int64_t a_stride,
      const unsigned char* b,
      int64_t b_stride,
      int64_t n) const {
    const auto product = [=, this](int64_t i) {
      const Value x = cast<Value>(load<E>(a + i * a_stride));
      const Value y = cast<Value>(load<E>(b + i * b_stride));
      return times(a_conj_ ? conjugated(x) : x, b_conj_ ? conjugated(y) : y);
    };
    Value sums[kSums] = {};
    int64_t i = 0;
    for (; i + kSums <= n; i += kSums) {
      for (int j = 0; j < kSums; ++j) sums[j] = plus(sums[j], product(i + j));
    }
    for (int j = 0; i + j < n; ++j) sums[j] = plus(sums[j], product(i + j));
    Value total = sums[0];
    for (int j = 1; j < kSums; ++j) total = plus(total, sums[j]);
    return total;
  }

  int64_t n_;
  const unsigned char* a_;
  const unsigned char* b_;
  int64_t a_stride_;
  int64_t b_stride_;
  bool a_conj_;
  bool b_conj_;
};

template <class E>
void dotOf(Launch& launch, const puone_dot_args& args) {
  store(launch.resolve(args.out), Dot<E>(launch, args).run(launch));
}

void dot(Launch& launch, const puone_dot_args& args) {
  forComputeType(args.dtype, [&]<class E>(Type<E>) { dotOf<E>(launch, args); });
}

constexpr Kernel kKernels[] = {entry<puone_dot_args, dot>("dot")};

} // namespace

std::span<const Kernel> dotKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
