# SPDX-License-Identifier: BSD-3-Clause
"""The words of the reports on the pages: the tone of each, its name and its meaning.

A tone is a class of static/style.css. The name of a word is that of its glyph in
glyphs.svg, unless the table says another.
"""

from __future__ import annotations

from typing import NamedTuple


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
    "pass": Word("good", "pass", "It works."),
    "fail": Word("bad", "fail", "The call works and its result is wrong."),
    "error": Word("bad", "error", "Something raised, so there is no result."),
    "crash": Word("bad", "crash", "The process died."),
    "timeout": Word("bad", "timeout", "There was no end in time; the process was killed."),
    "device_lost": Word("bad", "device lost", "The device did not work any more after it."),
    "xpass": Word(
        "bad",
        "unexpected pass",
        "It works, and the expectations say it does not: the entry has to go.",
    ),
    "flaky": Word("warn", "flaky", "It failed, and passed when it was run again."),
    "xfail": Word("held", "expected failure", "It fails, and the backend's expectations say so."),
    "unsupported": Word(
        "mute",
        "unsupported",
        "It was not asked: the backend says that it lacks what the check needs.",
    ),
    "blocked_upstream": Word(
        "mute",
        "blocked upstream",
        "It was not asked: PyTorch itself prevents it, in this version.",
    ),
    "not_run": Word("mute", "not run", "The run ended before it came to the check."),
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
