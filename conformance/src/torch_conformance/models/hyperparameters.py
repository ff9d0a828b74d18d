# SPDX-License-Identifier: BSD-3-Clause
"""Hyperparameters of the optimizers of torch.optim, with values that are not their defaults: data.

Every value changes the steps visibly within ten gradients. So betas are small: with the default, a
second moment only grows in the first steps, and amsgrad, which keeps its maximum, does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Settings = dict[str, Any]

_BETAS = {"betas": (0.5, 0.6)}
_ADAM = {**_BETAS, "eps": 0.1, "weight_decay": 0.2, "maximize": True}
#: What each optimizer is given in all its settings.
_ALWAYS: dict[str, Settings] = {
    # Its default is the precision of the dtype, which differs between float32 and float64.
    "adafactor": {"eps": (1e-6, 1e-3)},
}
#: Optimizer -> its hyperparameters, except for the rate.
_VALUES: dict[str, Settings] = {
    "adadelta": {"rho": 0.5, "eps": 1e-2, "weight_decay": 0.2, "maximize": True},
    "adafactor": {
        "beta2_decay": -0.5,
        "eps": (1e-2, 1e-1),
        "d": 1.5,
        "weight_decay": 0.2,
        "maximize": True,
    },
    "adagrad": {
        "lr_decay": 0.3,
        "weight_decay": 0.2,
        "initial_accumulator_value": 0.5,
        "eps": 0.1,
        "maximize": True,
    },
    "adam": {**_ADAM, "amsgrad": True, "decoupled_weight_decay": True},
    "adamax": _ADAM,
    "adamw": {**_ADAM, "amsgrad": True},
    "asgd": {"lambd": 0.2, "alpha": 0.5, "t0": 3.0, "weight_decay": 0.2, "maximize": True},
    "muon": {"weight_decay": 0.3, "momentum": 0.5, "nesterov": False, "ns_steps": 3},
    "nadam": {**_ADAM, "momentum_decay": 0.3, "decoupled_weight_decay": True},
    # With its betas, the rectification begins after some of the steps.
    "radam": {**_ADAM, "betas": (0.5, 0.9), "decoupled_weight_decay": True},
    "rmsprop": {
        "alpha": 0.5,
        "eps": 0.1,
        "weight_decay": 0.2,
        "momentum": 0.5,
        "centered": True,
        "maximize": True,
    },
    "rprop": {"etas": (0.3, 1.7), "step_sizes": (0.02, 0.3), "maximize": True},
    "sgd": {
        "momentum": 0.8,
        "dampening": 0.3,
        "weight_decay": 0.2,
        "nesterov": True,
        "maximize": True,
    },
}
#: What a hyperparameter does nothing without.
_TOGETHER: dict[tuple[str, str], Settings] = {
    ("adam", "amsgrad"): _BETAS,
    ("adam", "decoupled_weight_decay"): {"weight_decay": 0.2},
    ("adamw", "amsgrad"): _BETAS,
    ("nadam", "decoupled_weight_decay"): {"weight_decay": 0.2},
    ("radam", "decoupled_weight_decay"): {"weight_decay": 0.2},
    ("sgd", "dampening"): {"momentum": 0.8},
    ("sgd", "nesterov"): {"momentum": 0.8},
}
#: What excludes another hyperparameter, and is given alone only.
_APART = {("sgd", "dampening")}

RATE = 0.1
OPTIMIZERS = tuple(_VALUES)


def alone(optimizer: str) -> Iterator[Settings]:
    """The default of everything, then each hyperparameter alone."""
    base = {"lr": RATE} | _ALWAYS.get(optimizer, {})
    yield base
    for name, value in _VALUES[optimizer].items():
        yield base | _TOGETHER.get((optimizer, name), {}) | {name: value}


def together(optimizer: str) -> Settings:
    """All hyperparameters that go together."""
    values = _VALUES[optimizer].items()
    return {"lr": RATE} | {k: v for k, v in values if (optimizer, k) not in _APART}
