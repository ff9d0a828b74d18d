/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of kernels that work on many tensors at once: the optimizers' foreach operators and
 * fused steps. Tensors are dense, and all that belong together are laid out alike, so a tensor is a
 * number of elements. A list longer than PUONE_MAX_TENSORS takes several launches. */
#ifndef PUONE_KERNELS_ARGS_MULTI_TENSOR_H
#define PUONE_KERNELS_ARGS_MULTI_TENSOR_H

#include "kernels/args.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PUONE_MAX_TENSORS 64
#define PUONE_MULTI_OPERANDS 5

/* Kernels "foreach_*": out[t][i] = f(in0[t][i], in1[t][i], ...), operands as in
 * puone_elementwise_args: outputs first, cast from and to the type the kernel computes in. */
typedef struct puone_foreach_args {
  int32_t count;
  int32_t compute;
  int32_t dtypes[PUONE_MULTI_OPERANDS];
  /* Bit o: operand o of every tensor is the one element it points at. */
  uint32_t broadcast;
  /* Bit o (at most one): operand o of tensor t is tensors[t].immediate, an element of dtypes[o]. */
  uint32_t immediate;
  int32_t reserved;
  unsigned char parameters[2][16]; /* elements of `compute` */
  struct {
    int64_t n;
    void* data[PUONE_MULTI_OPERANDS];
    unsigned char immediate[16];
  } tensors[PUONE_MAX_TENSORS];
} puone_foreach_args;

/* Kernels "fused_adam", "fused_sgd", "fused_adagrad": one step of every parameter. `dtype` is that
 * of parameters, gradients and states: FLOAT16, BFLOAT16, FLOAT32 or FLOAT64. */
typedef struct puone_fused_args {
  int32_t count;
  int32_t dtype;
  int32_t maximize;
  int32_t amsgrad;      /* adam: states[2] is the largest second moment so far */
  int32_t decoupled;    /* adam: weight decay apart from the gradient, AdamW's */
  int32_t nesterov;     /* sgd */
  int32_t momentum_set; /* sgd: states[0] is the momentum buffer */
  int32_t first_step;   /* sgd: the buffer has no content yet */
  int32_t lr_dtype;     /* of *lr_tensor: FLOAT32 or FLOAT64 */
  int32_t reserved;
  double lr;
  double beta1; /* adam; sgd: momentum */
  double beta2; /* adam; sgd: dampening; adagrad: the learning rate's decay */
  double weight_decay;
  double eps;
  void* lr_tensor;  /* or NULL: lr */
  void* grad_scale; /* float32, or NULL: gradients, which are written back, are divided by it */
  void* found_inf;  /* float32, or NULL: if it is 1 there is no step */
  struct {
    int64_t n;
    void* parameter;
    void* gradient;
    void* states[3]; /* adam: first and second moment, largest second moment; adagrad: sum */
    void* step;      /* float32; adam and adagrad */
  } tensors[PUONE_MAX_TENSORS];
} puone_fused_args;

/* Kernel "amp_unscale": every element is multiplied by *inv_scale; *found_inf becomes 1 if one was
 * not finite. */
typedef struct puone_amp_unscale_args {
  int32_t count;
  int32_t dtype;
  void* inv_scale; /* float32 */
  void* found_inf; /* float32 */
  struct {
    int64_t n;
    void* data;
  } tensors[PUONE_MAX_TENSORS];
} puone_amp_unscale_args;

/* Kernel "amp_update_scale": *scale and *growth_tracker after a step; nothing but them is read or
 * written but *found_inf. */
typedef struct puone_amp_update_scale_args {
  void* scale;          /* float32 */
  void* growth_tracker; /* int32 */
  void* found_inf;      /* float32 */
  double growth_factor;
  double backoff_factor;
  int64_t growth_interval;
} puone_amp_update_scale_args;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_KERNELS_ARGS_MULTI_TENSOR_H */
