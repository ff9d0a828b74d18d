/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * args.h - the kernels' C interface: what a launch hands to a device kernel.
 *
 * Shared by aten/ (which fills the structs) and by every driver (which runs the kernels). C99, no
 * torch. Each struct is the `args` of one kernel name in hal.h's kernel_launch().
 *
 * Strides are BYTES and may be zero or negative; `data` points at the element of index 0. Sizes are
 * elements. Dimension 0 is the innermost (fastest), as in TensorIterator after coalescing. ndim 0
 * means one element. Any size 0 means nothing to do.
 */
#ifndef PUONE_KERNELS_ARGS_H
#define PUONE_KERNELS_ARGS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most dimensions a launch can describe, after coalescing. The same bound as CUDA's TensorIterator
 * kernels (aten/src/ATen/cuda/detail/OffsetCalculator.cuh, MAX_DIMS). */
#define PUONE_MAX_DIMS 25

/* Element types. The values are ABI and independent of c10::ScalarType. */
typedef enum puone_dtype {
  PUONE_BOOL = 0,
  PUONE_UINT8 = 1,
  PUONE_INT8 = 2,
  PUONE_INT16 = 3,
  PUONE_INT32 = 4,
  PUONE_INT64 = 5,
  PUONE_UINT16 = 6,
  PUONE_UINT32 = 7,
  PUONE_UINT64 = 8,
  PUONE_FLOAT16 = 9,
  PUONE_BFLOAT16 = 10,
  PUONE_FLOAT32 = 11,
  PUONE_FLOAT64 = 12,
  PUONE_COMPLEX32 = 13, /* two float16 */
  PUONE_COMPLEX64 = 14,
  PUONE_COMPLEX128 = 15
} puone_dtype;

typedef struct puone_operand {
  void* data;                      /* device address */
  int64_t strides[PUONE_MAX_DIMS]; /* bytes */
} puone_operand;

/* Kernel "copy": out[i] = cast(f(in[i])), f being conj and/or neg. Casts follow C++ static_cast as
 * torch.Tensor.to does on the CPU (complex to real drops the imaginary part; anything to bool is
 * `!= 0`). Ranges must not overlap. The two operands may live on different devices. */
typedef struct puone_copy_args {
  int32_t ndim;
  int32_t out_dtype;
  int32_t in_dtype;
  int32_t conj; /* 1: conjugate complex input */
  int32_t neg;  /* 1: negate the input */
  int32_t reserved;
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand out;
  puone_operand in;
} puone_copy_args;

/* Kernel "copy_bits": out[i] = in[i], elements of element_size bytes (1, 2, 4, 8 or 16) moved
 * unchanged; serves every dtype, also those puone_dtype does not name (float8, quantized). */
typedef struct puone_copy_bits_args {
  int32_t ndim;
  int32_t element_size;
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand out;
  puone_operand in;
} puone_copy_bits_args;

/* Kernel "fill": out[i] = the element_size (1, 2, 4, 8 or 16) bytes of `value`. The caller has
 * already cast the value to the output's dtype. */
typedef struct puone_fill_args {
  int32_t ndim;
  int32_t element_size;
  int64_t sizes[PUONE_MAX_DIMS];
  puone_operand out;
  unsigned char value[16];
} puone_fill_args;

/* Kernel "delay": keeps its stream busy for at least `ns` nanoseconds without using a host core if
 * the device can do that. The counterpart of torch.cuda._sleep, for tests and benchmarks. */
typedef struct puone_delay_args {
  uint64_t ns;
} puone_delay_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_H */
