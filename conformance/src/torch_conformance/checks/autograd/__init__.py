# SPDX-License-Identifier: BSD-3-Clause
"""Autograd in depth: higher derivatives, hooks, checkpointing, anomalies, streams, devices, rules.

What the chapter `operator` asks of autograd in passing is not repeated here.
"""
