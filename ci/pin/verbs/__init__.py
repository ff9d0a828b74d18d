# SPDX-License-Identifier: BSD-3-Clause
"""The sub-verbs of `python -m ci pin`, a module each."""
