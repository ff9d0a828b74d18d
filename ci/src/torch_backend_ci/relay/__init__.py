# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's cross-repository CI relay (RFC-0050, RFC-0054): what it sends and what it gets."""
