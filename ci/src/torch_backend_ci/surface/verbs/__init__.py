# SPDX-License-Identifier: BSD-3-Clause
"""The sub-verbs of `torch-backend-ci surface`: modules with add_arguments(parser) and run(args)."""
