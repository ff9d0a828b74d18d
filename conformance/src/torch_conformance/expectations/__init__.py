# SPDX-License-Identifier: BSD-3-Clause
"""Checked lists of known outcomes: ``unsupported``, ``xfail`` and ``flaky``.

`unsupported` is permanent, `xfail` is a defect that will be mended (so it has a status and an
expiry), `flaky` may go either way. An entry that names no check is an error, an unexpected pass is
red and names the line to delete, so that the file can only shrink or be changed knowingly.

`entry` judges an outcome, `file` reads the lists, `update` rewrites them from a report, `patterns`
finds the fewest patterns for many ids, `lint` and `skips` are behind the verbs of these names.
"""

from torch_conformance.expectations.entry import Expectation, ExpectationsError
from torch_conformance.expectations.file import Expectations

__all__ = ["Expectation", "Expectations", "ExpectationsError"]
