# SPDX-License-Identifier: BSD-3-Clause
"""The tables of rules, for people: what `surface diff` can find."""

from __future__ import annotations

import re

from ci.surface.diff.rules import RULES, Rule
from ci.surface.model import Domain
from ci.surface.report.report import words_of

TITLES = {
    Domain.CPP: "C++ declarations and macros",
    Domain.HEADER: "Headers",
    Domain.SYMBOL: "Exported symbols",
    Domain.PYTHON: "Python API",
    Domain.OPERATOR: "Operators",
    Domain.DEVICE_MODULE: "What is read off torch.<device>",
}


def render() -> str:
    """Every rule as Markdown, a table per domain."""
    return "\n".join(_table(domain) for domain in RULES)


def _table(domain: Domain) -> str:
    head = [
        f"### {TITLES[domain].replace('<', '&lt;')}",
        "",
        "| Rule | Severity | Concerns | What |",
    ]
    rows = [_row(rule) for rule in RULES[domain].values()]
    return "\n".join([*head, "|---|---|---|---|", *rows, ""])


def _row(rule: Rule) -> str:
    message = re.sub(r"`?\{(\w+)\}`?", lambda word: f"*{word[1].replace('_', ' ')}*", rule.message)
    what = message.replace("<", "&lt;").replace("|", "\\|")
    concerns = ", ".join(rule.concerns)
    return f"| `{rule.name}` | {words_of(rule.severity)} | {concerns} | {what} |"
