# SPDX-License-Identifier: BSD-3-Clause
"""A PR, judged against a pinned torch: which files it changes, put on the torch, read, compared."""
