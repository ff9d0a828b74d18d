/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of what reads a source at other positions: upsampling and padding. Tensors are
 * contiguous: [plane][z][y][x]; with fewer spatial dimensions the outer ones have size 1. */
#ifndef PUONE_KERNELS_ARGS_RESAMPLE_H
#define PUONE_KERNELS_ARGS_RESAMPLE_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum puone_resample_mode {
  PUONE_RESAMPLE_NEAREST = 0,        /* source floor(position * scale) */
  PUONE_RESAMPLE_NEAREST_EXACT = 1,  /* source floor((position + 1/2) * scale) */
  PUONE_RESAMPLE_LINEAR = 2,         /* between the two nearest to (position + 1/2) * scale - 1/2 */
  PUONE_RESAMPLE_LINEAR_CORNERS = 3, /* between the two nearest to position * scale */
  PUONE_RESAMPLE_CUBIC = 4,          /* through the four nearest to the place of LINEAR */
  PUONE_RESAMPLE_CUBIC_CORNERS = 5,  /* through the four nearest to the place of LINEAR_CORNERS */
  PUONE_RESAMPLE_REFLECT = 6,        /* position - before, mirrored at the first and last element */
  PUONE_RESAMPLE_REPLICATE = 7       /* position - before, or the first or last element */
} puone_resample_mode;

/* One spatial dimension: z, y, x. */
typedef struct puone_resample_axis {
  int64_t source;
  int64_t result;
  int64_t before; /* padding before the first element, negative to crop */
  double scale;   /* source elements per result element */
} puone_resample_axis;

/* Kernel "resample" makes `result` of `source`. Kernel "resample_backward" makes the gradient of
 * `source` of the gradient of `result`: its output lies in `source`. */
typedef struct puone_resample_args {
  int32_t dtype;
  int32_t mode;
  int64_t planes;
  puone_resample_axis axes[3];
  void* source;
  void* result;
} puone_resample_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_RESAMPLE_H */
