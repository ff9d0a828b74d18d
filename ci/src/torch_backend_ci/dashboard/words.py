# SPDX-License-Identifier: BSD-3-Clause
"""The words of the reports on the pages: the tone of each, its name and its meaning.

A tone is a class of static/style.css. The name of a word is that of its glyph, unless the table
says another.
"""

from __future__ import annotations

from typing import NamedTuple

from torch_conformance.spec.outcome import TRAITS


class Word(NamedTuple):
    """What is known of a word."""

    tone: str
    name: str
    meaning: str


class Standing(NamedTuple):
    """What is known of a standing."""

    tone: str
    glyph: str
    name: str
    meaning: str


#: In the order in which outcomes are shown.
OUTCOMES = {
    outcome.value: Word(traits.tone, traits.name, traits.meaning)
    for outcome, traits in TRAITS.items()
}

#: What a run says of a requirement.
STANDINGS = {
    "verified": Standing(
        "good",
        "pass",
        "verified",
        "A check of it passed, none was bad, and none was excused by an expectation.",
    ),
    "broken": Standing("bad", "fail", "broken", "A check of it is bad."),
    "waived": Standing(
        "held", "xfail", "waived", "A check of it was excused by the backend's expectations."
    ),
    "untested": Standing(
        "warn", "not_run", "untested", "No check of it passed, and none says why not."
    ),
    "not asked": Standing(
        "mute",
        "unsupported",
        "not asked",
        "None of its checks could be asked of this backend with this torch.",
    ),
}

#: How an operator ran.
EVIDENCE = {
    "native": Word("info", "native", "A kernel of the backend itself computed it."),
    "composite": Word(
        "info", "composite", "PyTorch put it together from other operators of the backend."
    ),
    "fallback": Word(
        "warn",
        "fallback",
        "It was computed on the CPU, and its operands were copied there and back.",
    ),
}

#: How a check changed from one run to the next.
KINDS = {
    "regression": Word(
        "bad", "regression", "It moved down in the order of outcomes, or is new and bad."
    ),
    "improvement": Word("good", "improvement", "It moved up in the order of outcomes."),
    "other": Word("mute", "other change", "It is neither better nor worse than before."),
}

#: How a series did on a day.
NIGHTS = {
    "fine": Word("good", "nothing unexpected", "A whole run without an unexpected result."),
    "bad": Word("bad", "unexpected results", "A whole run with unexpected results."),
    "cut": Word("warn", "no whole run", "Runs were made, and none was whole."),
}
