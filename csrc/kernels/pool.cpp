// SPDX-License-Identifier: BSD-3-Clause
// Pooling over windows, and its gradients: every output element is gathered by one thread, so that
// no two threads write the same element.
#include <limits>
#include <stdexcept>

#include "kernels/args/pool.h"
#include "kernels/compute.h"
#include "kernels/families/pool.h"
#include "kernels/planes.h"
#include "kernels/stored.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// The type in which elements of type E are compared and averaged.
template <class E>
using Value = std::conditional_t<kIsStorageFloat<E>, float, E>;

/// Every step-th element of [begin, end) along one dimension.
struct Span {
  int64_t begin;
  int64_t end;
  int64_t step;
  int64_t padded; // elements, those of the padding included

  PUONE_FN int64_t size() const {
    return end - begin; // correct without dilation; averages have none
  }
};

PUONE_FN int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// The elements of the source that belong to result element `at`.
PUONE_FN Span spanOf(const puone_pool_axis& axis, int64_t at) {
  if (axis.kernel == 0) {
    const int64_t begin = at * axis.source / axis.result;
    const int64_t end = ((at + 1) * axis.source + axis.result - 1) / axis.result;
    return {begin, end, 1, end - begin};
  }
  const int64_t first = at * axis.stride - axis.padding;
  const int64_t end = first + (axis.kernel - 1) * axis.dilation + 1;
  const int64_t begin =
      first < 0 ? first + (axis.dilation - 1 - first) / axis.dilation * axis.dilation : first;
  return {
      begin,
      least(end, axis.source),
      axis.dilation,
      least(end, axis.source + axis.padding) - first};
}

/// The elements of the result that may use source element `at`; some of them may not.
PUONE_FN Span usersOf(const puone_pool_axis& axis, int64_t at) {
  if (axis.kernel == 0) {
    const int64_t begin = at * axis.result / axis.source;
    const int64_t end = ((at + 1) * axis.result + axis.source - 1) / axis.source;
    return {begin, end, 1, end - begin};
  }
  const int64_t last = at + axis.padding;
  const int64_t first = last - (axis.kernel - 1) * axis.dilation;
  const int64_t begin = first > 0 ? (first + axis.stride - 1) / axis.stride : 0;
  const int64_t end = least(axis.result, last / axis.stride + 1);
  return {begin, end, 1, end - begin};
}

/// The divisor of an average over these spans.
PUONE_FN int64_t
divisorOf(const puone_pool_args& args, const Span& z, const Span& y, const Span& x) {
  if (args.divisor != 0) return args.divisor;
  if (args.count_padding != 0) return z.padded * y.padded * x.padded;
  return z.size() * y.size() * x.size();
}

/// One side of a pool: the axes' member that has its sizes.
using Side = int64_t puone_pool_axis::*;

PUONE_FN int64_t planeSize(const puone_pool_args& args, Side side) {
  return args.axes[0].*side * args.axes[1].*side * args.axes[2].*side;
}

/// Calls body(row, source, result) for the rows of one side, and the function that it returns for
/// each element of the row. `source` and `result` are the indices of the plane's first elements.
template <class Body>
void forRowsOf(
    Launch& launch, const puone_pool_args& args, Side side, Side other, const Body& body) {
  const Extent extent{args.axes[0].*side, args.axes[1].*side, args.axes[2].*side};
  const int64_t source_plane = planeSize(args, &puone_pool_axis::source);
  const int64_t result_plane = planeSize(args, &puone_pool_axis::result);
  const int64_t share = planeSize(args, other) / (planeSize(args, side) + 1) + 8;
  forPlanes(launch, args.planes, extent, share, [=] PUONE_DEVICE(const Row& row) {
    return body(row, row.plane * source_plane, row.plane * result_plane);
  });
}

template <class Body>
void forResultRows(Launch& launch, const puone_pool_args& args, const Body& body) {
  forRowsOf(launch, args, &puone_pool_axis::result, &puone_pool_axis::source, body);
}

template <class Body>
void forSourceRows(Launch& launch, const puone_pool_args& args, const Body& body) {
  forRowsOf(launch, args, &puone_pool_axis::source, &puone_pool_axis::result, body);
}

template <class S>
void maxPoolOf(Launch& launch, const puone_pool_args& args, S stored) {
  using V = typename S::Value;
  using Limits = std::numeric_limits<V>;
  constexpr V kLowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  const unsigned char* source = launch.resolve(args.source);
  unsigned char* result = launch.resolve(args.result);
  unsigned char* indices = launch.resolve(args.indices);
  forResultRows(
      launch, args, [=] PUONE_DEVICE(const Row& row, int64_t source_plane, int64_t result_plane) {
        const Span zs = spanOf(args.axes[0], row.z);
        const Span ys = spanOf(args.axes[1], row.y);
        const int64_t height = args.axes[1].source;
        const int64_t width = args.axes[2].source;
        const int64_t first =
            result_plane + (row.z * args.axes[1].result + row.y) * args.axes[2].result;
        return [=](int64_t at) {
          const Span xs = spanOf(args.axes[2], at);
          V top = kLowest;
          int64_t where = (zs.begin * height + ys.begin) * width + xs.begin;
          for (int64_t z = zs.begin; z < zs.end; z += zs.step) {
            for (int64_t y = ys.begin; y < ys.end; y += ys.step) {
              for (int64_t x = xs.begin; x < xs.end; x += xs.step) {
                const int64_t index = (z * height + y) * width + x;
                const V value = stored.load(source, source_plane + index);
                if (value > top || value != value) {
                  top = value;
                  where = index;
                }
              }
            }
          }
          stored.store(result, first + at, top);
          store(indices + (first + at) * sizeof(int64_t), where);
        };
      });
}

template <class S>
void maxPoolBackwardOf(Launch& launch, const puone_pool_args& args, S stored) {
  using V = typename S::Value;
  unsigned char* source = launch.resolve(args.source);
  const unsigned char* result = launch.resolve(args.result);
  const unsigned char* indices = launch.resolve(args.indices);
  forSourceRows(
      launch, args, [=] PUONE_DEVICE(const Row& row, int64_t source_plane, int64_t result_plane) {
        const Span zs = usersOf(args.axes[0], row.z);
        const Span ys = usersOf(args.axes[1], row.y);
        const int64_t height = args.axes[1].result;
        const int64_t width = args.axes[2].result;
        const int64_t first = (row.z * args.axes[1].source + row.y) * args.axes[2].source;
        return [=](int64_t at) {
          const Span xs = usersOf(args.axes[2], at);
          V sum{};
          for (int64_t z = zs.begin; z < zs.end; ++z) {
            for (int64_t y = ys.begin; y < ys.end; ++y) {
              for (int64_t x = xs.begin; x < xs.end; ++x) {
                const int64_t index = result_plane + (z * height + y) * width + x;
                if (load<int64_t>(indices + index * sizeof(int64_t)) != first + at) continue;
                sum += stored.load(result, index);
              }
            }
          }
          stored.store(source, source_plane + first + at, sum);
        };
      });
}

template <class S>
void avgPoolOf(Launch& launch, const puone_pool_args& args, S stored) {
  using V = typename S::Value;
  const unsigned char* source = launch.resolve(args.source);
  unsigned char* result = launch.resolve(args.result);
  forResultRows(
      launch, args, [=] PUONE_DEVICE(const Row& row, int64_t source_plane, int64_t result_plane) {
        const Span zs = spanOf(args.axes[0], row.z);
        const Span ys = spanOf(args.axes[1], row.y);
        const int64_t height = args.axes[1].source;
        const int64_t width = args.axes[2].source;
        const int64_t first =
            result_plane + (row.z * args.axes[1].result + row.y) * args.axes[2].result;
        return [=](int64_t at) {
          const Span xs = spanOf(args.axes[2], at);
          V sum{};
          for (int64_t z = zs.begin; z < zs.end; ++z) {
            for (int64_t y = ys.begin; y < ys.end; ++y) {
              for (int64_t x = xs.begin; x < xs.end; ++x) {
                sum += stored.load(source, source_plane + (z * height + y) * width + x);
              }
            }
          }
          const bool empty = zs.size() <= 0 || ys.size() <= 0 || xs.size() <= 0;
          const auto divisor = static_cast<V>(divisorOf(args, zs, ys, xs));
          stored.store(result, first + at, empty ? V{} : static_cast<V>(sum / divisor));
        };
      });
}

template <class S>
void avgPoolBackwardOf(Launch& launch, const puone_pool_args& args, S stored) {
  using V = typename S::Value;
  unsigned char* source = launch.resolve(args.source);
  const unsigned char* result = launch.resolve(args.result);
  forSourceRows(
      launch, args, [=] PUONE_DEVICE(const Row& row, int64_t source_plane, int64_t result_plane) {
        const Span zs = usersOf(args.axes[0], row.z);
        const Span ys = usersOf(args.axes[1], row.y);
        const int64_t height = args.axes[1].result;
        const int64_t width = args.axes[2].result;
        const int64_t first =
            source_plane + (row.z * args.axes[1].source + row.y) * args.axes[2].source;
        return [=](int64_t at) {
          const Span xs = usersOf(args.axes[2], at);
          V sum{};
          for (int64_t z = zs.begin; z < zs.end; ++z) {
            for (int64_t y = ys.begin; y < ys.end; ++y) {
              for (int64_t x = xs.begin; x < xs.end; ++x) {
                const auto divisor = static_cast<V>(divisorOf(
                    args,
                    spanOf(args.axes[0], z),
                    spanOf(args.axes[1], y),
                    spanOf(args.axes[2], x)));
                sum += stored.load(result, result_plane + (z * height + y) * width + x) / divisor;
              }
            }
          }
          stored.store(source, first + at, sum);
        };
      });
}

template <class Body>
void forPoolType(int32_t dtype, const Body& body) {
  switch (dtype) {
    case PUONE_INT64:
      return body(stored<int64_t, Value<int64_t>>(dtype));
    case PUONE_FLOAT16:
      return body(stored<Half, Value<Half>>(dtype));
    case PUONE_BFLOAT16:
      return body(stored<BFloat16, Value<BFloat16>>(dtype));
    case PUONE_FLOAT32:
      return body(stored<float, Value<float>>(dtype));
    case PUONE_FLOAT64:
      return body(stored<double, Value<double>>(dtype));
  }
  throw std::invalid_argument("pooling has no such dtype");
}

void maxPool(Launch& launch, const puone_pool_args& args) {
  forPoolType(args.dtype, [&](auto type) { maxPoolOf(launch, args, type); });
}

void maxPoolBackward(Launch& launch, const puone_pool_args& args) {
  forPoolType(args.dtype, [&](auto type) { maxPoolBackwardOf(launch, args, type); });
}

void avgPool(Launch& launch, const puone_pool_args& args) {
  forPoolType(args.dtype, [&](auto type) { avgPoolOf(launch, args, type); });
}

void avgPoolBackward(Launch& launch, const puone_pool_args& args) {
  forPoolType(args.dtype, [&](auto type) { avgPoolBackwardOf(launch, args, type); });
}

} // namespace

PUONE_KERNEL(avg_pool) = avgPool;
PUONE_KERNEL(avg_pool_backward) = avgPoolBackward;
PUONE_KERNEL(max_pool) = maxPool;
PUONE_KERNEL(max_pool_backward) = maxPoolBackward;

} // namespace puone::kernels::PUONE_ISA
