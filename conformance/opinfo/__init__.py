# SPDX-License-Identifier: BSD-3-Clause
"""The OpInfo tier: PyTorch's own operator database, run against the CPU."""
