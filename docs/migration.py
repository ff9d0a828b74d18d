# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tables of docs/migration.md from torch_puone/migrate/table.py.

python docs/migration.py
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from torch_puone.migrate import table

PAGE = Path(__file__).with_suffix(".md")
_TABLES = re.compile(r"(?<=<!-- generated: docs/migration.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
# Long names of the table, as the page introduces them.
_SHORT = {table.TYPE: "TYPE", table.DEVICE: "DEVICE", f"{table.MODULE}.": "MODULE."}


def page() -> str:
    """The page with its tables made again."""
    return _TABLES.sub(lambda _: "\n".join(_tables()) + "\n", PAGE.read_text())


def _tables() -> Iterator[str]:
    """The lines of the table. Rows that say the same of several names are one row."""
    yield "\n| name | write | |\n|---|---|---|"
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in table.ROWS:
        groups[_replacement(row), row.note].append(row.name)
    for (replacement, note), names in groups.items():
        yield f"| {_code(names)} | {replacement} | {note} |"
    yield "\n| environment variable | |\n|---|---|"
    for name, advice in table.ENVIRONMENT.items():
        yield f"| `{name}` | {advice} |"


def _replacement(row: table.Row) -> str:
    if row.setting:
        return "no effect on other devices"
    last = row.name.rpartition(".")[2]
    expressions = [re.sub(rf"\.{last}$", ".NAME", _short(one)) for one in row.instead]
    return ", else ".join(f"`{one}`" for one in expressions) or "no equivalent"


def _short(expression: str) -> str:
    for long, short in _SHORT.items():
        expression = expression.replace(long, short)
    return expression


def _code(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(page())
