# SPDX-License-Identifier: BSD-3-Clause
"""From `torch.cuda` to any accelerator: run a CUDA script unchanged, list or make the changes.

    python -m torch_puone.migrate train.py --epochs 1    runs it; each use warns once
    python -m torch_puone.migrate --report train.py      lists the uses, without a device
    python -m torch_puone.migrate --fix train.py         shows the changes; --write makes them

In a program of your own, `with cuda_as("puone"):` gives a block the same environment.

The package knows nothing of puone: it imports PyTorch and itself. A copy of the directory in
another backend's package works there. What it does and does not cover: docs/migration.md.
"""

from __future__ import annotations

from .notices import CudaUse, NoEquivalent
from .scope import cuda_as

__all__ = ["CudaUse", "NoEquivalent", "cuda_as"]
