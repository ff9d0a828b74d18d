# SPDX-License-Identifier: BSD-3-Clause
"""The list of outcomes in conformance/README.md, from the table in spec/outcome.py.

    outcomes.py            writes it

Between two comments stand a row for each outcome, and their order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from torch_conformance.spec.outcome import TRAITS, Red

DOCUMENT = Path(__file__).resolve().parents[2] / "conformance" / "README.md"
LISTED = re.compile(r"(?<=<!-- outcomes -->\n).*?(?=<!-- end of outcomes -->)", re.DOTALL)
_RED = {Red.ALWAYS: "x", Red.UNLESS_LISTED: "unless listed", Red.NEVER: ""}


def expected() -> str:
    """The table, and the outcomes from worst to best with why."""
    rows = [
        f"| `{outcome}` | {traits.meaning} | {_RED[traits.red]} |\n"
        for outcome, traits in TRAITS.items()
    ]
    alike: dict[int, list[str]] = defaultdict(list)
    for outcome, traits in TRAITS.items():
        alike[traits.rank].append(f"- `{outcome}`: {traits.because}\n")
    order = "".join(line for rank in sorted(alike) for line in alike[rank])
    table = f"| outcome | meaning | red |\n|---|---|---|\n{''.join(rows)}"
    return f"\n{table}\nFrom worst to best, with the reason:\n\n{order}\n"


def written() -> str:
    """What the document has now."""
    found = LISTED.search(DOCUMENT.read_text(encoding="utf-8"))
    return found[0] if found else ""


if __name__ == "__main__":
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(LISTED.sub(lambda _: expected(), text), encoding="utf-8")
