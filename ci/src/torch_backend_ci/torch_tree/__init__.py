# SPDX-License-Identifier: BSD-3-Clause
"""A torch to read, wherever it comes from: its headers, its Python files, its version."""

from torch_backend_ci.torch_tree.locate import linked, locate
from torch_backend_ci.torch_tree.tree import TorchTree

__all__ = ["TorchTree", "linked", "locate"]
