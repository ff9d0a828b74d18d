# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a sample of mutants: a line for each, so that a run can be resumed."""

from __future__ import annotations

from pathlib import Path

import msgspec

#: In the place of a check: the backend cannot be loaded, so that no check runs.
LOADING = "loading the backend"


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the suite said to one mutant."""

    number: int
    killed: bool = False
    by: str = ""
    """The check that noticed it."""
    outcome: str = ""
    message: str = ""
    ran: int = 0
    """Checks that were run."""
    reached: int = 0
    """Checks that reach it."""
    skipped: int = 0
    """Of these, those that were left out, because they take too long together."""
    driver_tests: int | None = None
    """Tests of drivers that were run, too; None: they have not been asked."""
    calls: int | None = None
    """Random calls with and without it whose results were compared; None: there were none."""
    differs: str = ""
    """The first of them that gave another result."""
    equivalent: str | None = None
    """Why it is no defect at all; empty: it may be one; None: its code has not been compared."""
    seconds: float = 0.0
    broken: str = ""
    """Why there was no trial."""

    @property
    def survived(self) -> bool:
        """Whether it is a defect, as far as is known, that nothing noticed."""
        return not (self.killed or self.equivalent or self.broken)


class Record:
    """The verdicts in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        data = file.read_bytes() if file.is_file() else b""
        if data and not data.endswith(b"\n"):  # The run was killed while it wrote.
            data = data[: data.rfind(b"\n") + 1]
            file.write_bytes(data)
        read = [msgspec.json.decode(line, type=Verdict) for line in data.splitlines()]
        self.verdicts = {verdict.number: verdict for verdict in read}

    def add(self, verdict: Verdict) -> None:
        """Keep one; the last of a number counts."""
        self.verdicts[verdict.number] = verdict
        with self._file.open("ab") as file:
            file.write(msgspec.json.encode(verdict) + b"\n")
