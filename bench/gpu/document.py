# SPDX-License-Identifier: BSD-3-Clause
"""The results file as typed classes: what its schema is made from, and what reads it in tests.

`python -m bench.gpu.document` writes the schema.
`python -m bench.gpu` itself does not import this: it runs on machines that have torch and nothing
else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bench.gpu.result import SCHEMA
from torch_backend_ci.document import Part, Positive
from torch_backend_ci.schemas import render

SCHEMA_FILE = Path(__file__).with_name("gpu-results.schema.json")

_Seconds = Annotated[float, Meta(ge=0)]
_Measure = Annotated[float, Meta(gt=0)]


class Gpu(Part, frozen=True):
    """A card, as nvidia-smi describes it."""

    name: str
    driver: str
    memory: str


class Machine(Part, frozen=True):
    """What was measured on; null: could not be found out."""

    gpu: str | None
    gpus: tuple[Gpu, ...]
    nvcc: str | None
    torch: str | None
    torch_cuda: str | None
    torch_commit: str | None
    python: str
    platform: str
    processor: str
    cores: int | None


class Source(Part, frozen=True):
    """The commit, and whether the checkout differed from it."""

    commit: str | None
    dirty: bool | None


class Step(Part, frozen=True):
    """One step of the run."""

    name: str
    does: str
    status: Literal["done", "failed", "not run"]
    reason: Annotated[str, Meta(description="Of any status but done.")]
    seconds: _Seconds
    data: Annotated[Mapping[str, Any], Meta(description="What the step found; its own.")]


class Spread(Part, frozen=True):
    """Over the rounds, in microseconds; low and high are the 10th and 90th percentile."""

    median_us: _Measure
    low_us: _Measure
    high_us: _Measure
    rounds: Positive


class Problems(Part, omit_defaults=True, frozen=True):
    """By side, why there is no measurement of it."""

    puone: str | msgspec.UnsetType = msgspec.UNSET
    cuda: str | msgspec.UnsetType = msgspec.UNSET


class Measurement(Part, frozen=True):
    """One thing measured on both sides."""

    group: str
    name: str
    clock: Annotated[
        Literal["device", "host", "wall"],
        Meta(description="device: between events; host: until the calls return; wall: until done."),
    ]
    work: Annotated[
        float,
        Meta(ge=0, description="What it must at least do of the resource: bytes, or operations."),
    ]
    resource: str | None
    gauges: Annotated[bool, Meta(description="Its rate counts as what the resource can do.")]
    puone: Spread | None
    cuda: Spread | None
    problems: Problems
    ratio: Annotated[
        _Measure | None,
        Meta(
            description="Where speed is promised, cuda by puone; where a cost is bounded, puone by "
            "cuda."
        ),
    ]
    target: Annotated[str | None, Meta(description="Such as `at least 0.95`.")]
    met: bool | None
    limit_us: Annotated[_Measure | None, Meta(description="work by the best rate of the run.")]
    of_limit: Annotated[_Measure | None, Meta(description="limit_us by puone's median.")]


class Results(Part, tag_field="schema", tag=SCHEMA, frozen=True):
    """Results of one `make gpu`."""

    complete: Annotated[bool, Meta(description="The run came to its end.")]
    rehearsal: Annotated[
        bool, Meta(description="On a stand-in driver, with sizes that prove nothing.")
    ]
    started: Annotated[str, Meta(description="In UTC, ISO 8601.")]
    seconds: Annotated[_Seconds, Meta(description="Of the whole run; 0 until its end.")]
    machine: Machine
    source: Source
    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]
    measurements: tuple[Measurement, ...]


def schema() -> str:
    """The text of the schema."""
    _, _, name, version = SCHEMA.split(":")
    return render(Results, name, int(version))


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema(), encoding="utf-8")
