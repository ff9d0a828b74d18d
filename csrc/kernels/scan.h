// SPDX-License-Identifier: BSD-3-Clause
// The scan idiom: running sums and their like along one dimension of a strided operand.
//
//   template <class T> struct CumulativeSum {
//     using In = T;
//     using Gathered = double;
//     PUONE_FN Gathered nothing() const;
//     PUONE_FN Gathered step(Gathered all, In x, int64_t position) const;
//     PUONE_FN Gathered combine(Gathered a, Gathered b) const;    // a comes before b
//     PUONE_FN T result(Gathered all) const;      // or a Pair, for two outputs
//   };
//
// host/scan.h goes along the lines; simt/scan.h scans pieces of a line separately and combines
// them.
#pragma once

#include <stdexcept>

#include "kernels/args/reduction.h"
#include "kernels/cast.h"
#include "kernels/dimensions.h"
#include "kernels/elementwise.h"
#include "kernels/entry.h"
#include "kernels/isa.h"
#include "kernels/launch.h"

namespace puone::kernels::PUONE_ISA {

namespace detail {

/// The scanned dimension, and the dimensions that number the lines, innermost first.
struct ScannedSpace {
  explicit ScannedSpace(const puone_scan_args& args) {
    for (const int32_t d : byStride(args.ndim, args.in.strides)) {
      if (d < 0) break;
      (d == args.scanned ? along : lines)
          .add(
              args.sizes[d],
              {args.in.strides[d], args.outs[0].strides[d], args.outs[1].strides[d]});
    }
  }

  Dimensions along, lines;
};

template <class Op>
void scan(Launch& launch, const puone_scan_args& args);

template <template <class> class Op, class... T>
void dispatchScan(Launch& launch, const puone_scan_args& args, ComputeTypes<T...> /*types*/) {
  const bool found = ((args.compute == kDtype<T> && (scan<Op<T>>(launch, args), true)) || ...);
  if (!found) throw std::invalid_argument("the kernel does not compute in this dtype");
}

template <template <class> class Op, class Types>
void runScan(Launch& launch, const puone_scan_args& args) {
  dispatchScan<Op>(launch, args, Types{});
}

} // namespace detail

/// The scan Op<T> with T in Types, for PUONE_KERNEL.
template <template <class> class Op, class Types>
constexpr Implementation<puone_scan_args> scanKernel = detail::runScan<Op, Types>;

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/scan.h"
#else
#include "kernels/host/scan.h"
#endif
