# SPDX-License-Identifier: BSD-3-Clause
"""The vocabulary of outcomes, and the exceptions a check ends with besides AssertionError."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Literal, NamedTuple


class Outcome(str, Enum):
    """How one check ended. The string values are the ones in reports and expectations."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    DEVICE_LOST = "device_lost"
    XPASS = "xpass"
    FLAKY = "flaky"
    XFAIL = "xfail"
    UNSUPPORTED = "unsupported"
    BLOCKED_UPSTREAM = "blocked_upstream"
    NOT_RUN = "not_run"

    def __str__(self) -> str:
        return self.value

    @property
    def traits(self) -> Traits:
        """All that is known of it."""
        return TRAITS[self]


class Reach(Enum):
    """How far a run came with a check."""

    EXECUTED = "executed"
    NOT_ASKED = "not asked"
    NOT_REACHED = "not reached"


class Red(Enum):
    """When an outcome makes a run red."""

    ALWAYS = "always"
    UNLESS_LISTED = "unless an entry of the expectations decided it"
    NEVER = "never"


class Traits(NamedTuple):
    """What the terminal, JUnit, comparisons, the gate, the store and the pages go by."""

    name: str
    meaning: str
    """For readers of pages and documents."""
    reach: Reach
    red: Red
    rank: int
    """More is better: a check whose outcome has a lower rank than before has regressed."""
    because: str
    """Why it has this rank."""
    letter: str
    """Of pytest's progress."""
    category: Literal["passed", "failed", "xfailed", "skipped"]
    """What pytest calls it; a red one is always `failed`."""
    tone: Literal["good", "bad", "warn", "held", "mute"]
    """Of its colour on pages."""
    glyph: str
    """Its shape on pages, in SVG of 16 by 16."""


#: The one table of outcomes, in the order in which they are shown. A further outcome is a further
#: member of `Outcome` and a further entry here.
TRAITS = {
    Outcome.PASS: Traits(
        name="pass",
        meaning="It works.",
        reach=Reach.EXECUTED,
        red=Red.NEVER,
        rank=9,
        because="It works.",
        letter=".",
        category="passed",
        tone="good",
        glyph='<circle cx="8" cy="8" r="7"/><path class="ink" d="M4.7 8.3 7 10.6l4.3-5"/>',
    ),
    Outcome.FAIL: Traits(
        name="fail",
        meaning="The call works and its result is wrong.",
        reach=Reach.EXECUTED,
        red=Red.ALWAYS,
        rank=5,
        because="The call works and its result is wrong.",
        letter="F",
        category="failed",
        tone="bad",
        glyph=(
            '<rect x="1.3" y="1.3" width="13.4" height="13.4" rx="2"/>'
            '<path class="ink" d="m5.2 5.2 5.6 5.6m0-5.6-5.6 5.6"/>'
        ),
    ),
    Outcome.ERROR: Traits(
        name="error",
        meaning="An exception was raised, so there is no result.",
        reach=Reach.EXECUTED,
        red=Red.ALWAYS,
        rank=4,
        because="There is no result, and an exception says so.",
        letter="E",
        category="failed",
        tone="bad",
        glyph='<path d="m8 .2 7.8 7.8L8 15.8.2 8z"/><path class="ink" d="M8 4.2v4.6m0 2.2v.6"/>',
    ),
    Outcome.CRASH: Traits(
        name="crash",
        meaning="The process died.",
        reach=Reach.EXECUTED,
        red=Red.ALWAYS,
        rank=2,
        because="It takes the process of the user and all that is unsaved in it.",
        letter="C",
        category="failed",
        tone="bad",
        glyph=(
            '<path d="m8 0 1.9 3.4 3.8-1.1-1.1 3.8L16 8l-3.4 1.9 1.1 3.8-3.8-1.1L8 '
            '16l-1.9-3.4-3.8 1.1 1.1-3.8L0 8l3.4-1.9-1.1-3.8 3.8 1.1z"/>'
            '<path class="ink" d="m9 4.6-2.6 3.6h3.2L7 11.6"/>'
        ),
    ),
    Outcome.TIMEOUT: Traits(
        name="timeout",
        meaning="There was no end in time; the process was killed.",
        reach=Reach.EXECUTED,
        red=Red.ALWAYS,
        rank=3,
        because="The user has to kill the process, but can look at it before.",
        letter="T",
        category="failed",
        tone="bad",
        glyph=(
            '<path d="M2.6.6h10.8v3L9.8 8l3.6 4.4v3H2.6v-3L6.2 8 2.6 3.6z"/>'
            '<path class="ink" d="M5.4 13.2h5.2"/>'
        ),
    ),
    Outcome.DEVICE_LOST: Traits(
        name="device lost",
        meaning="The device did not work any more after it.",
        reach=Reach.EXECUTED,
        red=Red.ALWAYS,
        rank=1,
        because="It takes the device, and with it every check after it.",
        letter="L",
        category="failed",
        tone="bad",
        glyph=(
            '<path d="m8 .3 6.7 3.8v7.8L8 15.7l-6.7-3.8V4.1z"/>'
            '<path class="ink" d="M4.4 11.6 11.6 4.4"/>'
        ),
    ),
    Outcome.XPASS: Traits(
        name="unexpected pass",
        meaning="It works, and the expectations say it does not: the entry has to go.",
        reach=Reach.EXECUTED,
        red=Red.ALWAYS,
        rank=8,
        because="It works, and the expectations do not know it yet.",
        letter="X",
        category="failed",
        tone="bad",
        glyph=(
            '<rect x="1.3" y="1.3" width="13.4" height="13.4" rx="2"/>'
            '<path class="ink" d="M4.5 8.3 7 10.8l4.5-5.4"/>'
        ),
    ),
    Outcome.FLAKY: Traits(
        name="flaky",
        meaning="It failed, and passed when it was run again.",
        reach=Reach.EXECUTED,
        red=Red.UNLESS_LISTED,
        rank=7,
        because="It works at times.",
        letter="y",
        category="xfailed",
        tone="warn",
        glyph=(
            '<path d="M8 .8 15.8 15H.2z"/>'
            '<path class="ink" d="M4.4 11.7c1.2-1.8 2.4-1.8 3.6-.6s2.4 1.2 3.6-.6"/>'
        ),
    ),
    Outcome.XFAIL: Traits(
        name="expected failure",
        meaning="It fails, and the backend's expectations say so.",
        reach=Reach.EXECUTED,
        red=Red.NEVER,
        rank=5,
        because="As a failure: a waiver writes it down and mends nothing.",
        letter="x",
        category="xfailed",
        tone="held",
        glyph=(
            '<path class="line" d="M8 1.7a6.3 6.3 0 1 1 0 12.6A6.3 6.3 0 1 1 8 1.7zM5.7 5.7l4.6 '
            '4.6m0-4.6-4.6 4.6"/>'
        ),
    ),
    Outcome.UNSUPPORTED: Traits(
        name="unsupported",
        meaning="It was not asked: the backend says that it lacks what the check needs.",
        reach=Reach.NOT_ASKED,
        red=Red.NEVER,
        rank=6,
        because="Nothing is promised, so nothing is wrong.",
        letter="u",
        category="skipped",
        tone="mute",
        glyph='<path class="line" d="M8 1.7a6.3 6.3 0 1 1 0 12.6A6.3 6.3 0 1 1 8 1.7zM5 8h6"/>',
    ),
    Outcome.BLOCKED_UPSTREAM: Traits(
        name="blocked upstream",
        meaning="It was not asked: PyTorch itself prevents it, in this version.",
        reach=Reach.NOT_ASKED,
        red=Red.NEVER,
        rank=6,
        because="Nothing is promised, so nothing is wrong.",
        letter="b",
        category="skipped",
        tone="mute",
        glyph='<path class="line" d="M2 2h12v12H2zM5 4.8h6M8 12V7.4M5.6 9.4 8 7l2.4 2.4"/>',
    ),
    Outcome.NOT_RUN: Traits(
        name="not run",
        meaning="The run ended before it came to the check.",
        reach=Reach.NOT_REACHED,
        red=Red.NEVER,
        rank=0,
        because="Nothing is known, so nothing may be hoped.",
        letter="n",
        category="skipped",
        tone="mute",
        glyph='<circle class="line dashed" cx="8" cy="8" r="6.3"/>',
    ),
}


def _with(condition: Callable[[Traits], bool]) -> frozenset[Outcome]:
    return frozenset(outcome for outcome, traits in TRAITS.items() if condition(traits))


BAD = _with(lambda traits: traits.red is Red.ALWAYS)
"""Outcomes that make a run red whatever the expectations say."""

BAD_UNLESS_LISTED = _with(lambda traits: traits.red is Red.UNLESS_LISTED)
"""Outcomes that make a run red unless an entry of the expectations decided them."""

EXECUTED = _with(lambda traits: traits.reach is Reach.EXECUTED)
"""Outcomes that need the body of the check to have run; a run with none of them is a failure."""

NOT_ASKED = _with(lambda traits: traits.reach is Reach.NOT_ASKED)
"""Outcomes of checks that say nothing of the backend."""

RANKS = {outcome.value: traits.rank for outcome, traits in TRAITS.items()}
"""More is better."""

SKIPPED = _with(lambda traits: traits.red is Red.NEVER and traits.category != "passed")
"""Outcomes that JUnit calls skipped."""


def is_unexpected(outcome: Outcome, listed: bool) -> bool:
    """Whether an outcome makes a run red; `listed`: an entry of the expectations decided it."""
    return outcome in BAD or (outcome in BAD_UNLESS_LISTED and not listed)


class CheckError(Exception):
    """Something in a check raised; the text tells type and message of what it was."""


class LoadProblem(str, Enum):
    """What is known of why a backend does not load, beside what Python or torch say of it."""

    NO_DEVICE = "no_device"
    WRONG_TORCH = "wrong_torch"
    NO_TORCH = "no_torch"
    TOO_SLOW = "too_slow"
    DIED = "died"


class CannotLoad(Exception):
    """The backend could not be brought up; the text is the reason shown to the user."""

    def __init__(self, text: str, problem: LoadProblem | None = None) -> None:
        super().__init__(text)
        self.problem = problem
