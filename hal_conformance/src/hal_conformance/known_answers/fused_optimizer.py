# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of fused optimizers: the algorithms of the papers, in long doubles. Adam: Kingma
and Ba 2015, with AMSGrad of Reddi et al. 2018 and the decoupled decay of Loshchilov and Hutter
2019. SGD: Sutskever et al. 2013 as PyTorch has it. Adagrad: Duchi et al. 2011."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hal_conformance.answers import COMPUTE, EPSILON, REALS, Array, Case, In, InOut, rounded
from hal_conformance.kernels import DType
from hal_conformance.known_answers.foreach import LENGTHS, MOST

Options = Mapping[str, Any]
# Parameter, gradient and states, before and after.
Tensors = tuple[Array, ...]

DEFAULTS: Options = {"lr": 0.125, "eps": 2.0**-10, "beta1": 0.75, "beta2": 0.875, "scale": 1.0}


def adam(o: Options, step: int, tensors: Tensors) -> Tensors:
    parameter, gradient, first, second, largest = tensors
    gradient = gradient / o["scale"]
    g = -gradient if o.get("maximize") else gradient
    decay = o.get("weight_decay", 0)
    if o.get("decoupled"):
        parameter = parameter * (1 - o["lr"] * decay)
    else:
        g = g + decay * parameter
    first = o["beta1"] * first + (1 - o["beta1"]) * g
    second = o["beta2"] * second + (1 - o["beta2"]) * g * g
    root = second
    if o.get("amsgrad"):
        root = largest = np.maximum(largest, second)
    first_hat = first / (1 - np.longdouble(o["beta1"]) ** step)
    root_hat = root / (1 - np.longdouble(o["beta2"]) ** step)
    parameter = parameter - o["lr"] * first_hat / (np.sqrt(root_hat) + o["eps"])
    return parameter, gradient, first, second, largest


def sgd(o: Options, step: int, tensors: Tensors) -> Tensors:
    parameter, gradient, buffer = tensors
    gradient = gradient / o["scale"]
    g = (-gradient if o.get("maximize") else gradient) + o.get("weight_decay", 0) * parameter
    if o.get("momentum_set"):
        momentum, dampening = o["beta1"], o["beta2"]
        buffer = g if o.get("first_step") else momentum * buffer + (1 - dampening) * g
        g = g + momentum * buffer if o.get("nesterov") else buffer
    return parameter - o["lr"] * g, gradient, buffer


def adagrad(o: Options, step: int, tensors: Tensors) -> Tensors:
    parameter, gradient, total = tensors
    gradient = gradient / o["scale"]
    g = (-gradient if o.get("maximize") else gradient) + o.get("weight_decay", 0) * parameter
    total = total + g * g
    lr = o["lr"] / (1 + (step - 1) * o["beta2"])
    return parameter - lr * g / (np.sqrt(total) + o["eps"]), gradient, total


def states_of(kernel: str, o: Options) -> int:
    if kernel == "fused_adam":
        return 3 if o.get("amsgrad") else 2
    return 1 if kernel == "fused_adagrad" or o.get("momentum_set") else 0


ALGORITHMS: dict[str, tuple[Callable[[Options, int, Tensors], Tensors], int]] = {
    "fused_adam": (adam, 5),
    "fused_sgd": (sgd, 3),
    "fused_adagrad": (adagrad, 3),
}


def one_step(
    kernel: str,
    dtype: DType,
    label: str,
    options: Options,
    lengths: Sequence[int] = LENGTHS,
    *,
    lr_dtype: DType | None = None,
    scaled: bool = False,
    found: float | None = None,
) -> Case:
    """Tensors at different steps. The learning rate is in memory where `lr_dtype` is given, so is
    the scale of the gradients where `scaled`, and whether there was an overflow in `found`."""
    o = {**DEFAULTS, **options, "scale": 4.0 if scaled else 1.0}
    algorithm, arrays = ALGORITHMS[kernel]
    states = states_of(kernel, o)
    epsilon = EPSILON[COMPUTE[dtype]]
    ulps = 1.0 if EPSILON[dtype] > epsilon else 8.0
    tensors = []
    for t, n in enumerate(lengths):
        random = np.random.default_rng(t)
        before = [rounded(random.standard_normal(n), dtype) for _ in range(2)]
        moments = [random.standard_normal(n), random.uniform(0.1, 2, n), random.uniform(0.1, 2, n)]
        if kernel == "fused_adagrad":
            moments = moments[1:]
        before += [rounded(x, dtype) for x in moments][: arrays - 2]
        after = tuple(np.asarray(x, np.longdouble) for x in before)
        step = 1 + t * 3
        if found != 1:
            after = algorithm(o, step, after)
        memory = [
            InOut(was, np.asarray(becomes, np.float64), dtype, ulps=ulps, absolute=16 * epsilon)
            for was, becomes in zip(before, after, strict=True)
        ]
        tensors.append(
            {
                "n": n,
                "parameter": memory[0],
                "gradient": memory[1],
                "states": memory[2 : 2 + states],
                "step": In(np.array([step]), DType.FLOAT32),
            }
        )
    args: dict[str, Any] = {key: value for key, value in o.items() if key != "scale"}
    args |= {"count": len(lengths), "dtype": dtype, "tensors": tensors}
    if lr_dtype is not None:
        args |= {
            "lr": 1e9,
            "lr_dtype": lr_dtype,
            "lr_tensor": In(np.array([o["lr"]]), lr_dtype),
        }
    if scaled:
        args["grad_scale"] = In(np.array([o["scale"]]), DType.FLOAT32)
    if found is not None:
        args["found_inf"] = In(np.array([found]), DType.FLOAT32)
    return Case(kernel, f"{dtype.name.lower()} {label}", args, (dtype,))


DECAY = {"weight_decay": 0.25}
VARIANTS: dict[str, dict[str, Options]] = {
    "fused_adam": {
        "plain": {},
        "weight decay": DECAY,
        "decoupled": {**DECAY, "decoupled": 1},
        "maximize": {**DECAY, "maximize": 1},
        "amsgrad": {"amsgrad": 1},
        "everything": {**DECAY, "decoupled": 1, "maximize": 1, "amsgrad": 1},
    },
    "fused_sgd": {
        "plain": {},
        "weight decay": DECAY,
        "maximize": {**DECAY, "maximize": 1},
        "momentum": {"momentum_set": 1},
        "first step": {"momentum_set": 1, "first_step": 1},
        "nesterov": {**DECAY, "momentum_set": 1, "nesterov": 1, "beta2": 0.0},
        "everything": {**DECAY, "momentum_set": 1, "maximize": 1, "nesterov": 1, "first_step": 1},
    },
    "fused_adagrad": {
        "plain": {"beta2": 0.0},
        "decay of the rate": {},
        "weight decay": DECAY,
        "maximize": {**DECAY, "maximize": 1},
    },
}


def cases() -> Iterator[Case]:
    for kernel, variants in VARIANTS.items():
        for dtype in REALS:
            for label, options in variants.items():
                yield one_step(kernel, dtype, label, options)
            last = options
            yield one_step(kernel, dtype, "most tensors", last, [3] * MOST)
            yield one_step(kernel, dtype, "no tensors", last, [])
            for of in (DType.FLOAT32, DType.FLOAT64):
                yield one_step(kernel, dtype, f"rate in {of.name.lower()}", last, lr_dtype=of)
            yield one_step(kernel, dtype, "scaled", last, scaled=True)
            yield one_step(kernel, dtype, "no overflow", last, scaled=True, found=0)
            yield one_step(kernel, dtype, "overflow", last, scaled=True, found=1)
