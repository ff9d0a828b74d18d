# SPDX-License-Identifier: BSD-3-Clause
"""How a run went: its jobs, their legs, the steps of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from workflow_runner.commands import Annotation
from workflow_runner.events import Event
from workflow_runner.matrix import Leg
from workflow_runner.sessions import StepResult


def together(results: Collection[str]) -> str:
    """What several results make: the worst, in GitHub's order."""
    worst = ("failure", "cancelled", "success")
    return next((word for word in worst if word in results), "skipped")


@dataclass
class LegResult:
    """One leg of a job, or all of a job without a matrix."""

    name: str
    matrix: Leg
    result: str
    outputs: dict[str, str] = field(default_factory=dict)
    steps: list[StepResult] = field(default_factory=list)
    url: str = ""
    """Of the environment that it deployed to."""

    @property
    def log(self) -> str:
        return "\n".join(f"--- {s.name}: {s.outcome}\n{s.log}" for s in self.steps)

    @property
    def annotations(self) -> list[Annotation]:
        return [annotation for step in self.steps for annotation in step.annotations]

    @property
    def summary(self) -> str:
        return "".join(step.summary for step in self.steps)


@dataclass
class JobResult:
    """How a job ended, and what it says to those that need it."""

    result: str
    outputs: dict[str, str] = field(default_factory=dict)
    legs: list[LegResult] = field(default_factory=list)


@dataclass
class WorkflowRun:
    """A run that is over."""

    number: int
    path: str
    name: str
    event: Event
    jobs: dict[str, JobResult] = field(default_factory=dict)
    concurrency: str = ""
    attempt: int = 1

    @property
    def conclusion(self) -> str:
        return together({job.result for job in self.jobs.values()})

    @property
    def log(self) -> str:
        return "\n".join(f"=== {self.path}: {name}\n{leg.log}" for name, leg in self._legs())

    @property
    def failures(self) -> dict[str, str]:
        """The ends of the logs of the legs that failed."""
        return {name: leg.log[-2000:] for name, leg in self._legs() if leg.result == "failure"}

    def _legs(self) -> Iterator[tuple[str, LegResult]]:
        for job, result in self.jobs.items():
            yield from ((f"{job}: {leg.name}", leg) for leg in result.legs)

    def leg(self, job: str, index: int = 0) -> LegResult:
        return self.jobs[job].legs[index]
