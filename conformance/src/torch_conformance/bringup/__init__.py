# SPDX-License-Identifier: BSD-3-Clause
"""Help for a backend that nobody here has seen: a first descriptor, advice, what to do next."""
