# SPDX-License-Identifier: BSD-3-Clause
"""The sample reports are what the suite would have written."""

from __future__ import annotations

from collections import Counter

import synthetic
from dashboard_sample import sample

from torch_conformance.results import levels


def test_every_sample_report_passes_the_reader() -> None:
    for made in sample().values():
        synthetic.document(made)


def test_the_sample_has_complete_and_incomplete_runs() -> None:
    verdicts = [levels.assess(synthetic.document(made).report) for made in sample().values()]
    assert Counter(verdict.unassessed for verdict in verdicts) == {
        None: 30,
        "the run is incomplete": 3,
    }
    assert {verdict.name for verdict in verdicts if verdict.unassessed is None} >= {
        None,
        "training",
    }
