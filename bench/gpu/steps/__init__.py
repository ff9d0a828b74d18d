# SPDX-License-Identifier: BSD-3-Clause
"""The steps of a run, one module each: a function from a Run to an Outcome."""
