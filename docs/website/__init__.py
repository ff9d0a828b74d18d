# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site: its pages, those made from data and headers, and links between them."""
