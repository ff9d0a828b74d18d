# SPDX-License-Identifier: BSD-3-Clause
"""The rules of comparison: a table per domain, and the finding that a row makes.

Code says *that* a rule holds; how bad that is, whom it concerns, the sentence and the hint are in
the tables.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch_backend_ci.surface.diff.rules import (
    anywhere,
    cpp,
    device_module,
    header,
    operators,
    python_api,
    symbol,
)
from torch_backend_ci.surface.diff.rules.rule import Rule
from torch_backend_ci.surface.model import Declaration, Domain, Finding

RULES: Mapping[Domain, Mapping[str, Rule]] = {
    Domain.CPP: cpp.RULES,
    Domain.HEADER: header.RULES,
    Domain.SYMBOL: symbol.RULES,
    Domain.PYTHON: python_api.RULES,
    Domain.OPERATOR: operators.RULES,
    Domain.DEVICE_MODULE: device_module.RULES,
}


def finding(
    rule: str,
    before: Declaration | None,
    after: Declaration | None,
    *,
    note: str = "",
    **words: object,
) -> Finding:
    """A finding by the rule of this name; at least one of the declarations is there.

    `note` is added to the message: a second sentence, for what this one case has of its own.
    """
    about = before or after
    if about is None:
        raise ValueError("a finding is about a declaration")
    row = rule_of(about.domain, rule)
    message = row.message.format(
        name=about.name,
        scope=about.name.rpartition("::" if "::" in about.name else ".")[0],
        was=one_line(before.text) if before else "",
        now=one_line(after.text) if after else "",
        **words,
    )
    return Finding(
        rule=row.name,
        severity=row.severity,
        surface=(after or about).surface,
        domain=about.domain,
        name=about.name,
        message=f"{message} {note}".rstrip(),
        before=before,
        after=after,
        concerns=row.concerns,
        hint=row.hint,
    )


def rule_of(domain: Domain, name: str) -> Rule:
    """The rule of this name."""
    return anywhere.RULES.get(name) or RULES[domain][name]


def one_line(text: str) -> str:
    """Text with every run of white space made one space."""
    return " ".join(text.split())


__all__ = ["RULES", "Rule", "finding", "one_line", "rule_of"]
