# SPDX-License-Identifier: BSD-3-Clause
"""The tables of conformance/README.md that follow from the suite's own declarations.

    readme_tables.py            writes them

Each stands between two comments: the outcomes, from the table in spec/outcome.py, the keys of the
descriptor, from its class, and the time budgets of the chapters, from the heads of their files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import structs

from torch_conformance.spec.chapters import chapters
from torch_conformance.spec.descriptor import Document
from torch_conformance.spec.outcome import TRAITS, Red
from torch_conformance.spec.typed import meanings
from torch_conformance.spec.user_file import Part

DOCUMENT = Path(__file__).resolve().parents[2] / "conformance" / "README.md"
_RED = {Red.ALWAYS: "x", Red.UNLESS_LISTED: "unless listed", Red.NEVER: ""}


def outcomes() -> str:
    """The outcomes; and from worst to best with why."""
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


def keys() -> str:
    """The keys of the descriptor and their meanings."""
    return f"\n| key | meaning |\n|---|---|\n{''.join(_rows(Document, ''))}\n"


def _rows(kind: type[Part], prefix: str) -> Iterator[str]:
    said = meanings(kind)
    for field in structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, Part):
            yield from _rows(field.type, f"{prefix}{field.encode_name}.")
        else:
            yield f"| `{prefix}{field.encode_name}` | {said[field.encode_name]} |\n"


def budgets() -> str:
    """The chapters with their time budgets, and the sum."""
    rows = [
        f"| `{chapter.surface}` | {chapter.title} | {chapter.budget_s} |\n"
        for chapter in chapters().values()
    ]
    total = sum(chapter.budget_s for chapter in chapters().values())
    head = "| chapter | about | seconds |\n|---|---|---|\n"
    return f"\n{head}{''.join(rows)}| all | | {total} |\n\n"


TABLES: dict[str, Callable[[], str]] = {
    "outcomes": outcomes,
    "keys of the descriptor": keys,
    "time budgets": budgets,
}


def written(name: str) -> str:
    """What the document has now."""
    found = _between(name).search(DOCUMENT.read_text(encoding="utf-8"))
    return found[0] if found else ""


def _filled(text: str, name: str) -> str:
    found = _between(name).search(text)
    assert found, f"the document has no place for {name}"
    return text[: found.start()] + TABLES[name]() + text[found.end() :]


def _between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)


if __name__ == "__main__":
    text = DOCUMENT.read_text(encoding="utf-8")
    for table in TABLES:
        text = _filled(text, table)
    DOCUMENT.write_text(text, encoding="utf-8")
