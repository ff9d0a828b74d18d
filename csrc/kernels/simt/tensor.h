// SPDX-License-Identifier: BSD-3-Clause
// What a warp does with a device's tensor cores, and how what they multiply gets to shared memory.
// The header simt_tensor.h on the include path (next to simt_dialect.h) defines it for the device's
// compiler; in the first three, all 32 threads of a warp take part.
//
//   multiplyAdd<type>(sums, a, b)      sums += a @ b, a being 16 x 32 bytes and b 32 bytes x 8. The
//                                      lane 4g + t has rows g and g + 8 of `a` at 4 bytes of the
//                                      depth from 4t on in a[0] and a[1], and from 16 + 4t on in
//                                      a[2] and a[3]; of column g of b the same in b[0] and b[1];
//                                      and of the sums rows g and g + 8 at columns 2t and 2t + 1.
//                                      Products are exact, sums are floats
//   loadMatrices<transposed>(out, at)  four matrices of 8 rows of 16 bytes in shared memory: lane
//                                      8m + r has the address of row r of matrix m. Lane 4r + c
//                                      gets in out[m] word c of row r; of a transposed matrix of
//                                      16-bit elements rows 2c and 2c + 1 of column r
//   toTf32(value)                      the bits of a float rounded to 10 bits behind the point; the
//                                      largest ones become infinite
//
//   startCopy(to, from, bytes)         has 16 bytes of shared memory written: `bytes` of them from
//                                      memory, zeros behind. Both addresses are aligned to 16
//                                      bytes; where nothing is read, `from` may be any
//   closeCopies()                      ends a group of this thread's copies, which may be empty
//   awaitCopies<newest>()              waits for this thread's groups but for the newest ones; what
//                                      other threads had copied is there behind a barrier too
#pragma once

namespace puone::kernels::dialect {

enum class TensorType {
  kFloat16,
  kBFloat16,
  kTf32
};

} // namespace puone::kernels::dialect

#include "simt_tensor.h"
