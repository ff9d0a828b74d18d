# SPDX-License-Identifier: BSD-3-Clause
"""A ClickHouse engine (chdb) in a process of its own: loads exports, answers queries.

It is some hundred MB of foreign code with threads of its own, and one process has one engine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Rows = list[list[Any]]


def ask(queries: Sequence[str], *exports: Path, zone: str = "UTC") -> list[Rows]:
    """What each query gives after these exports were loaded, one after the other."""
    asked = json.dumps({"queries": queries, "exports": [str(export) for export in exports]})
    done = subprocess.run(
        [sys.executable, __file__],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TZ": zone},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answers: list[Rows] = json.loads(done.stdout)
    return answers


def _main() -> None:
    from chdb.session import Session

    asked = json.load(sys.stdin)
    with Session() as session:
        for export in asked["exports"]:
            os.chdir(export)  # as the client's user: load.sql names files, not paths
            session.query(Path("schema.sql").read_text(encoding="utf-8"))
            session.query(Path("load.sql").read_text(encoding="utf-8"))
        answers = [str(session.query(q, "JSONCompactEachRow")) for q in asked["queries"]]
    print(json.dumps([[json.loads(line) for line in a.splitlines()] for a in answers]))


if __name__ == "__main__":
    _main()
