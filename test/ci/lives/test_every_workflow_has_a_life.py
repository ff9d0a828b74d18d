# SPDX-License-Identifier: BSD-3-Clause
"""Each workflow and action belongs to a life, whose tests hold every step of them to it."""

from __future__ import annotations

from lives import (
    of_a_night,
    of_a_pull_request,
    of_a_release,
    of_a_vendor,
    of_the_pins,
    of_the_relay,
)
from lives.steps import FILES

LIVES = (of_a_pull_request, of_a_night, of_the_pins, of_a_vendor, of_the_relay, of_a_release)


def test_every_workflow_and_action_has_a_life() -> None:
    assert len(FILES) > 10
    assert set().union(*(life.PLAYS for life in LIVES)) == set(FILES)
