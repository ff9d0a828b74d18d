# SPDX-License-Identifier: BSD-3-Clause
"""Anomaly mode names the node that makes NaN and its call in forward, and can be switched off."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks.autograd._leaves import zeros


def _anomalous(x: Tensor) -> Tensor:
    """Its gradient at 0 is 0 * infinity."""
    return (x.sqrt() * 0).sum()


def _anomaly(dev: Device) -> tuple[RuntimeError, str]:
    """The error of a backward that makes NaN in anomaly mode, and the text of all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            error = raised(_anomalous(zeros(dev, 2)).backward)
    assert isinstance(error, RuntimeError)
    return error, "\n".join(str(warning.message) for warning in caught)


@check("autograd/anomaly:names", "GRAD-007")
def anomaly_mode_names_the_node(dev: Device) -> None:
    """The error of anomaly mode names the node whose gradient is NaN."""
    error, _ = _anomaly(dev)
    assert "SqrtBackward" in str(error), str(error)


@check("autograd/anomaly:trace", "GRAD-007")
def anomaly_mode_shows_the_forward_call(dev: Device) -> None:
    """A warning of anomaly mode shows the call of forward that made the node."""
    _, text = _anomaly(dev)
    assert "_anomalous" in text and "sqrt()" in text, text


@check("autograd/anomaly:unchecked", "GRAD-007")
def anomaly_mode_can_leave_nan_alone(dev: Device) -> None:
    """With check_nan=False a gradient may be NaN."""
    x = zeros(dev, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=False):
            _anomalous(x).backward()
    dev.assert_equal(x.grad, [math.nan, math.nan])


@check("autograd/anomaly:hook_value", "GRAD-007")
def anomaly_mode_can_be_switched_off(dev: Device) -> None:
    """After an anomaly, backward with the mode switched off leaves NaN alone."""
    error, _ = _anomaly(dev)
    assert "SqrtBackward" in str(error), str(error)
    x = zeros(dev, 2)
    with torch.autograd.set_detect_anomaly(False):
        _anomalous(x).backward()
    dev.assert_equal(x.grad, [math.nan, math.nan])
