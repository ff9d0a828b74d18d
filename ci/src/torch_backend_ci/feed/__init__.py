# SPDX-License-Identifier: BSD-3-Clause
"""What merged changes mean for out-of-tree backends: a feed that people and programs follow."""
