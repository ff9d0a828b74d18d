# SPDX-License-Identifier: BSD-3-Clause
"""Small models of the kinds that people train, and the ways in which they train them."""
