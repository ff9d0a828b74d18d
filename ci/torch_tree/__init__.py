# SPDX-License-Identifier: BSD-3-Clause
"""A torch to read, wherever it comes from: its headers, its Python files, its version."""

from ci.torch_tree.locate import linked, locate
from ci.torch_tree.tree import TorchTree

__all__ = ["TorchTree", "linked", "locate"]
