# SPDX-License-Identifier: BSD-3-Clause
"""The sub-verbs of `torch-backend-ci pin`, a module each."""
