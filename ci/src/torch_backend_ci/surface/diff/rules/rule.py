# SPDX-License-Identifier: BSD-3-Clause
"""A row of the table of rules: what a kind of difference does to a backend, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch_backend_ci.surface.model import Severity

# Whom a difference can concern.
OVERRIDERS = "overriders"  # who derives from the class
CALLERS = "callers"  # who calls the function, or uses the class as it is
REGISTRARS = "registrars"  # who registers something with PyTorch
USERS = "users"  # who names the enumerator, constant, type or macro


@dataclass(frozen=True)
class Rule:
    """One kind of difference.

    `message` is one sentence, a str.format template: {name} is the declaration's name, {scope} the
    class or namespace that it stands in, {was} and {now} the declaration's text before and after
    (on one line); a rule may ask for further words, which the code that finds it must give.
    """

    name: str
    severity: Severity
    concerns: tuple[str, ...]
    message: str
    hint: str | None = None


def table(*rules: Rule) -> Mapping[str, Rule]:
    """The rules of one domain, by name."""
    named = {rule.name: rule for rule in rules}
    if len(named) < len(rules):
        raise ValueError("two rules have the same name")
    return named
