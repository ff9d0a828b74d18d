# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of the project that need more than a test run: see `bench/gpu`."""
