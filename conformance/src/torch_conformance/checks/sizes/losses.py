# SPDX-License-Identifier: BSD-3-Clause
"""Losses count each element, row and class once, as their gradients do."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._sizes import ROWS, Work

_LOSSES: dict[str, Work] = {
    "mse": lambda m: _loss(m, functional.mse_loss),
    "l1": lambda m: _loss(m, functional.l1_loss),
    "smooth_l1": lambda m: _loss(m, functional.smooth_l1_loss),
    "huber": lambda m: _loss(m, functional.huber_loss),
    "bce_with_logits": lambda m: m.gradients(
        lambda x: functional.binary_cross_entropy_with_logits(
            x, m.index(131_075, below=2).to(m.dtype), reduction="sum"
        ),
        m.steps(131_075),
    ),
    "bce": lambda m: functional.binary_cross_entropy(
        (m.steps(131_075) + 8.5) / 17, m.index(131_075, below=2).to(m.dtype), reduction="none"
    ),
    "kl_div": lambda m: functional.kl_div(
        m.steps(131_075), (m.steps(131_075, seed=1) + 9) / 18, reduction="none"
    ),
    "nll_rows": lambda m: _classified(m, ROWS, 5),
    "nll_classes": lambda m: _classified(m, 3, 65_537),
    "nll_129": lambda m: _classified(m, 257, 129),
    "nll_images": lambda m: m.gradients(
        lambda x: functional.nll_loss(x, m.index(3, 129, 65, below=5), reduction="sum"),
        m.steps(3, 5, 129, 65),
    ),
    "cosine": lambda m: functional.cosine_similarity(m.steps(ROWS, 5) + 9, m.steps(ROWS, 5), 1),
    "margin": lambda m: functional.margin_ranking_loss(
        m.steps(131_075), m.steps(131_075, seed=1), m.of(torch.ones(131_075)), reduction="none"
    ),
    "multi_margin": lambda m: functional.multi_margin_loss(
        m.steps(1031, 65), m.index(1031, below=65), reduction="none"
    ),
}


def _loss(m: Inputs, loss: Callable[..., Tensor]) -> list[Tensor]:
    target = m.steps(131_075, seed=1)
    return [
        *m.gradients(lambda x: loss(x, target, reduction="none"), m.steps(131_075)),
        loss(m.steps(131_075), target),
        loss(m.steps(131_075), target, reduction="sum"),
    ]


def _classified(m: Inputs, rows: int, classes: int) -> list[Tensor]:
    """Losses with weights and ignored rows, in each reduction, and a gradient."""
    labels, weight = m.index(rows, below=classes), m.whole(classes, seed=1).abs() + 1
    x = m.steps(rows, classes)
    return [
        functional.nll_loss(x, labels, weight, ignore_index=1, reduction="none"),
        functional.nll_loss(x, labels, weight, reduction="sum"),
        functional.nll_loss(x, labels, weight, ignore_index=0),
        *m.gradients(lambda x: functional.cross_entropy(x, labels, reduction="sum"), x),
    ]


@check("sizes/loss", "SIZE-010", cases=_LOSSES, breadth=STANDARD)
def losses_are_complete(dev: Device, case: str) -> None:
    """A loss over more than 2^16 elements, rows or classes counts each once, as its gradient."""
    agree_with_double(dev, _LOSSES[case], rtol=5e-5, slack=1e-6)
