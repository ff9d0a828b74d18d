# SPDX-License-Identifier: BSD-3-Clause
"""Rules for headers as a whole and for the language that they ask for."""

from __future__ import annotations

from torch_backend_ci.surface.diff.rules.rule import USERS, Rule, table
from torch_backend_ci.surface.model import Severity

RULES = table(
    Rule(
        "header_removed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is gone: including it fails.",
        "Include what took its place, chosen by __has_include or the version of torch.",
    ),
    Rule(
        "header_not_alone",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} does not compile on its own any more: {error}.",
        "It includes or uses something that torch does not ship; there is no way around it in a "
        "backend but to stop including it.",
    ),
    Rule("header_alone", Severity.COSMETIC, (USERS,), "{name} compiles on its own now."),
    Rule("header_added", Severity.COSMETIC, (USERS,), "{name} is a new header."),
    Rule(
        "language_raised",
        Severity.COMPILE_BREAK,
        (USERS,),
        "torch's headers ask for C++{now_minimum} and refuse what C++{was_minimum} was enough for.",
        "Compile the backend with -std=c++{now_minimum} (CMAKE_CXX_STANDARD).",
    ),
    Rule(
        "language_lowered",
        Severity.COSMETIC,
        (USERS,),
        "torch's headers are content with C++{now_minimum}; C++{was_minimum} was needed.",
    ),
)
