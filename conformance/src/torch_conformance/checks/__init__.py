# SPDX-License-Identifier: BSD-3-Clause
"""The chapters of the suite: one file per surface, every function registered with ``@check``."""
