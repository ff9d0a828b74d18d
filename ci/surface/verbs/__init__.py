# SPDX-License-Identifier: BSD-3-Clause
"""The sub-verbs of `python -m ci surface`, one module each: add_arguments(parser), run(args)."""
