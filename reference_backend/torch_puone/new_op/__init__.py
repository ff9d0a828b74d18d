# SPDX-License-Identifier: BSD-3-Clause
"""Skeletons of operators: the first text of a new one, which then belongs to its author.

`python -m torch_puone.new_op aten::NAME` is the command. `operators` reads PyTorch's own table,
`skeleton` writes the pieces, `checkout` inserts them, `todo` lists what a report misses.
"""
