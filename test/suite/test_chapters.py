# SPDX-License-Identifier: BSD-3-Clause
"""What the checks of optimizers and modules ask for can be answered."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from torch_conformance.authoring.device import Device
from torch_conformance.checks import module, optimizer
from torch_conformance.spec.descriptor import Descriptor

CPU = torch.device("cpu")


@pytest.mark.parametrize("maximize", [False, True])
def test_an_optimizer_is_given_what_it_can_reach(maximize: bool) -> None:
    run = optimizer._Run("sgd", CPU, {"lr": 0.1, "maximize": maximize})
    before = abs(run.loss().item())
    assert abs(run.steps(4).loss().item()) < before / 2


@pytest.mark.parametrize("case", optimizer.DENSE)
def test_no_setting_of_the_database_diverges(case: str) -> None:
    for settings in optimizer._settings(case):
        run = optimizer._Run(case, CPU, settings).steps(optimizer.STEPS)
        assert all(bool((value.abs() < 100).all()) for value in run.values()), settings


def drawn(*values: float) -> nn.Module:
    """A module with one parameter."""
    found = nn.Module()
    found.weight = nn.Parameter(torch.tensor(values))
    return found


def test_only_many_numbers_tell_where_they_were_drawn_from() -> None:
    dev = Device(Descriptor(name="cpu", device_type="cpu"))
    few, many = (1.0, -0.5, 0.25), (1.0, -0.5) * 4
    module._is_initialised(dev, drawn(*(24 * x for x in few)), drawn(*few))
    with pytest.raises(AssertionError, match="times as large"):
        module._is_initialised(dev, drawn(*(24 * x for x in many)), drawn(*many))
    with pytest.raises(AssertionError, match="times as large"):
        module._is_initialised(dev, drawn(0.0, 0.0, 0.0), drawn(*few))
