# SPDX-License-Identifier: BSD-3-Clause
"""Whether the ranks of a random program of collectives ended as they must."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from collective_programs import Program, must_fail
from collective_ranks import SHORT_S, Result

#: Seconds for what is not waiting for another rank, on a busy machine.
MARGIN_S = 30.0


@dataclass(frozen=True)
class Ended:
    """A rank that has ended; `status` is None if it did not in time."""

    status: int | None
    result: Result | None
    died_at: float | None
    output: str


def judge(program: Program, ranks: list[Ended]) -> list[str]:
    """What is wrong with a run; nothing if it was as it must be."""
    return [
        f"rank {rank}: {reason}"
        for rank, ended in enumerate(ranks)
        if (reason := _judge_rank(program, rank, ended, ranks))
    ]


def _judge_rank(program: Program, rank: int, ended: Ended, ranks: list[Ended]) -> str:
    death, result = program.death, ended.result
    dies = death is not None and death.rank == rank and ended.died_at is not None
    if ended.status is None:
        return "has not ended in time"
    if dies and death is not None and death.how in ("kill", "exit") and result is None:
        return "" if ended.status in (0, -signal.SIGKILL) else f"ended with status {ended.status}"
    if ended.status != 0 and not (dies and ended.status == -signal.SIGKILL):
        return f"ended with status {ended.status}"
    if result is None:
        return "ended without a result"
    if result.how == "wrong" or (result.how == "planted" and not dies):
        return f"{result.how}: {result.text}"
    if result.how == "error":
        return _judge_error(program, result, ranks)
    if result.how == "right" and must_fail(program, rank) and _has_died(program, ranks):
        return "ended without an error, though it needs the rank that died"
    return ""


def _judge_error(program: Program, result: Result, ranks: list[Ended]) -> str:
    if program.death is None:
        return result.text
    if not result.text.startswith(("DistBackendError: pccl, rank", "NotMade: ")):
        return f"an error of another kind: {result.text}"
    died_at = ranks[program.death.rank].died_at
    seconds = result.at - died_at if died_at is not None else 0.0
    if seconds > 2 * SHORT_S + MARGIN_S:
        return f"an error only {seconds:.1f} s after the rank died: {result.text}"
    return ""


def _has_died(program: Program, ranks: list[Ended]) -> bool:
    return program.death is not None and ranks[program.death.rank].died_at is not None
