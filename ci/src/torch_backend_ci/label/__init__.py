# SPDX-License-Identifier: BSD-3-Clause
"""Labels for a PR, from the files it touches and the findings of the surface."""
