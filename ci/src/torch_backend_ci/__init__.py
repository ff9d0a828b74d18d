# SPDX-License-Identifier: BSD-3-Clause
"""The CI tools for PyTorch and its backends: `torch-backend-ci VERB`.

Every verb is a pure function from files to findings, and a thin shell around it. Nothing here
imports torch at start-up, and nothing ever imports the reference backend: the tools work on any
torch, installed or not. Files are named here by their path in this package.
"""

__version__ = "0.1.0"
