# SPDX-License-Identifier: BSD-3-Clause
"""Pins: each is one exact torch that a configuration of the CI uses."""
