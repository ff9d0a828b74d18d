# SPDX-License-Identifier: BSD-3-Clause
"""One extractor per domain: `extract(tree, catalogue) -> list[Declaration]`."""
