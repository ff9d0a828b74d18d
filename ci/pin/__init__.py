# SPDX-License-Identifier: BSD-3-Clause
"""Pins: each the one exact torch that a lane of the CI runs against."""
