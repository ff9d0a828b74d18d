# SPDX-License-Identifier: BSD-3-Clause
"""The complex functions of csrc/kernels/complex_inverse.h, at points where naive formulas fail.

mpmath gives the truth, with more bits than any exponent of a double takes.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from interpreter import Python
from suites import STANDIN, needs_standin

pytestmark = needs_standin

FUNCTIONS = ("asin", "acos", "atan", "asinh", "acosh", "atanh", "tan", "tanh")
ULPS = 4
RANDOM = """
import json, random
import mpmath, torch
import torch_puone

mpmath.mp.prec = 2300
random.seed(1)


def part():
    sign = random.choice([-1, 1])
    return sign * random.choice([
        lambda: 10 ** random.uniform(-20, 20),
        lambda: 1 + random.choice([-1, 1]) * 10 ** random.uniform(-16, 0),
        lambda: random.uniform(0, 4),
        lambda: 10 ** random.uniform(-300, 300),
        lambda: random.choice([0.0, 0.5, 1.0, 2.0, 1.5707963267948966]),
    ])()


def ulps(got, true):
    rounded = float(true)
    if not 1e-300 < abs(rounded) < 1e300:
        return 0.0
    return float(abs((mpmath.mpf(got) - true) / true)) * 2.0**53


points = [complex(part(), part()) for _ in range(400)]
x = torch.tensor(points, dtype=torch.complex128)
worst = {}
for name in NAMES:
    got = getattr(torch, name)(x.to("puone")).tolist()
    found = [(0.0, "")]
    for point, value in zip(points, got):
        if 0.0 in (point.real, point.imag):
            continue  # on a branch cut the sign of zero decides, which mpmath does not have
        true = getattr(mpmath, name)(mpmath.mpc(point.real, point.imag))
        error = max(ulps(value.real, true.real), ulps(value.imag, true.imag))
        found.append((error, f"{name}{point} is {value}, not {complex(true)}"))
    worst[name] = max(found)
print(json.dumps(worst))
"""


@pytest.fixture(scope="module")
def worst(python: Python) -> dict[str, tuple[float, str]]:
    """By function, the largest error of a part in units in the last place, and where it is."""
    done = python(f"NAMES = {FUNCTIONS}\n{RANDOM}", env={"PUONE_DRIVER": str(STANDIN)})
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[float, str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_parts_are_exact_to_a_few_units(
    worst: dict[str, tuple[float, str]], name: str
) -> None:
    error, where = worst[name]
    assert 0 < error < ULPS, where


ON_AXES = """
import json
import torch
import torch_puone

x = torch.tensor([complex(*point) for point in POINTS], dtype=torch.complex128)
found = {name: getattr(torch, name)(x.to("puone")).cpu() for name in NAMES}
found = {name: torch.view_as_real(result).tolist() for name, result in found.items()}
print(json.dumps(found))
"""
PLACES = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 1e20, -1e20)
POINTS = [(x, y) for x in PLACES for y in PLACES if 0.0 in (x, y)]
OF_NUMPY = {name: name.replace("a", "arc", 1) if name[0] == "a" else name for name in FUNCTIONS}


@pytest.fixture(scope="module")
def on_axes(python: Python) -> dict[str, list[tuple[float, float]]]:
    """By function, the results on the axes, where signs of zeros tell the sides of branch cuts."""
    code = f"NAMES, POINTS = {FUNCTIONS}, {POINTS}\n{ON_AXES}"
    done = python(code, env={"PUONE_DRIVER": str(STANDIN)})
    assert done.returncode == 0, done.stderr
    found: dict[str, list[tuple[float, float]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_axes_are_those_of_numpy_to_the_sign_of_zero(
    on_axes: dict[str, list[tuple[float, float]]], name: str
) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(np, OF_NUMPY[name])(np.array([complex(*point) for point in POINTS]))
    parts = np.stack([expected.real, expected.imag], 1)
    np.testing.assert_allclose(on_axes[name], parts, rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(on_axes[name]), np.signbit(parts))
