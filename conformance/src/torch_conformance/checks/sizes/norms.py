# SPDX-License-Identifier: BSD-3-Clause
"""Normalisations are complete, as their gradients."""

from __future__ import annotations

from torch_conformance.authoring.api import STANDARD, Device, agree_with_double, check
from torch_conformance.checks.sizes._norms import NORMS


@check("sizes/norm", "SIZE-010", cases=NORMS, breadth=STANDARD)
def norms_are_complete(dev: Device, case: str) -> None:
    """A normalisation and all its gradients are complete for many features, rows and channels."""
    agree_with_double(dev, NORMS[case], rtol=1e-4, slack=2e-5)
