// SPDX-License-Identifier: BSD-3-Clause
// The sum of the products of two vectors. Both flavours divide the vectors into a number of chunks
// that does not depend on the load, and add the sums of the chunks in a fixed order.
#pragma once

#include <cstdint>

#include "kernels/args/matmul.h"
#include "kernels/compute.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {

/// Two vectors of n elements of type E.
template <class E>
struct Factors {
  using Value = ComputeValue<E>;

  Factors(Launch& launch, const puone_dot_args& args)
      : n(args.n),
        a(args.n > 0 ? launch.resolve(args.a) : nullptr), // without elements there may be no memory
        b(args.n > 0 ? launch.resolve(args.b) : nullptr),
        a_stride(args.a_stride),
        b_stride(args.b_stride),
        a_conj(args.a_conj != 0),
        b_conj(args.b_conj != 0) {}

  PUONE_FN Value product(E x, E y) const {
    const Value p = cast<Value>(x), q = cast<Value>(y);
    return times(a_conj ? conjugated(p) : p, b_conj ? conjugated(q) : q);
  }

  int64_t n;
  const unsigned char* a;
  const unsigned char* b;
  int64_t a_stride; // bytes
  int64_t b_stride;
  bool a_conj;
  bool b_conj;
};

} // namespace puone::kernels::PUONE_ISA

#ifdef PUONE_SIMT
#include "kernels/simt/dot.h"
#else
#include "kernels/host/dot.h"
#endif
