# SPDX-License-Identifier: BSD-3-Clause
"""Random operators in depth: reproducibility, positions, bounds, resolution and distributions.

The chapter `generator` asks whether seeds, states and generators are honoured. This one asks if the
numbers are the same everywhere, and good. Statistical limits lie where a right generator fails for
one seed in about a million; the seeds are fixed, so a check that passes passes always.
"""
