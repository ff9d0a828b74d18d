# SPDX-License-Identifier: BSD-3-Clause
"""The tables of rules, for people: what `surface diff` can find."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torch_backend_ci.surface.diff.rules import RULES, Rule, anywhere
from torch_backend_ci.surface.model import Domain
from torch_backend_ci.surface.report.report import words_of

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
    tables = [_table(TITLES[domain], rules.values()) for domain, rules in RULES.items()]
    return "\n".join([*tables, _table("Anywhere", anywhere.RULES.values())])


def _table(title: str, rules: Iterable[Rule]) -> str:
    head = [f"### {title.replace('<', '&lt;')}", "", "| Rule | Severity | Concerns | What |"]
    return "\n".join([*head, "|---|---|---|---|", *map(_row, rules), ""])


def _row(rule: Rule) -> str:
    message = re.sub(r"`?\{(\w+)\}`?", lambda word: f"*{word[1].replace('_', ' ')}*", rule.message)
    what = message.replace("<", "&lt;").replace("|", "\\|")
    concerns = ", ".join(rule.concerns)
    return f"| `{rule.name}` | {words_of(rule.severity)} | {concerns} | {what} |"
