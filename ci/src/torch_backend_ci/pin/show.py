# SPDX-License-Identifier: BSD-3-Clause
"""Pins for people, for pip, for a workflow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from torch_backend_ci import document
from torch_backend_ci.document import Part, Positive
from torch_backend_ci.errors import CiError
from torch_backend_ci.pin import file
from torch_backend_ci.pin.file import PinFile
from torch_backend_ci.pin.model import INDEXES, Pin, Torch, check_name

MATRIX_LIMIT = 256  # jobs: GitHub takes no more of one matrix


class Pins(Part, tag_field="schema_version", tag=1, frozen=True):
    """What `pin show --format json` prints."""

    pins: tuple[PinFile, ...]


class Job(Part, frozen=True):
    """One shard of the suite in one configuration."""

    lane: Annotated[str, Meta(description="PIN-DRIVER")]
    pin: str
    driver: str
    torch: Annotated[str, Meta(description="The version of the pin.")]
    shard: Positive
    shards: Positive


class Matrix(Part, frozen=True):
    """What `pin matrix` prints: a matrix of GitHub, a job for each configuration and shard."""

    include: Annotated[tuple[Job, ...], Meta(min_length=1, max_length=MATRIX_LIMIT)]


def text(pins: Sequence[Pin]) -> str:
    """A paragraph for each pin."""
    return "\n".join(map(_paragraph, pins))


def as_json(pins: Sequence[Pin]) -> str:
    """As schema/pins.schema.json says."""
    return document.dumps(Pins(tuple(map(file.as_file, pins))), indent=2)


def requirements(pins: Sequence[Pin], build: str | None = None) -> str:
    """What `pip install --no-deps -r` takes, of one pin: a wheel with another hash is refused.

    `build` is the local part of another build of the same version and commit (`cpu`), of which the
    pin has no hashes.
    """
    if len(pins) != 1:
        raise CiError("requirements are those of one pin: name it")
    torch = resolved(pins[0])
    if build and INDEXES[pins[0].index].local != build:
        return _of_build(torch, build)
    hashes = [f" --hash=sha256:{w.sha256}" for w in torch.wheels if w.sha256]
    if len(hashes) != len(torch.wheels):
        hashes = ["  # not hashed: the index publishes no hash of some of its wheels"]
    url = INDEXES[pins[0].index].url
    return (f"--index-url {url}\n" if url else "") + f"torch=={torch.version}{''.join(hashes)}\n"


def _of_build(torch: Torch, build: str) -> str:
    kinds = [kind for kind in INDEXES.values() if kind.local == build and kind.url]
    if not kinds or torch.public.is_devrelease:
        raise CiError(f"there is no index of builds {build!r} of torch {torch.version}")
    return f"--index-url {kinds[0].url}\ntorch=={torch.public}+{build}\n"


def matrix(pins: Sequence[Pin], drivers: Sequence[str], shards: int) -> str:
    """The matrix, on one line. A pin without a version has no lane."""
    if shards < 1:
        raise CiError(f"{shards} shards: at least 1 is needed")
    jobs = [
        Job(
            lane=f"{pin.name}-{check_name(driver)}",
            pin=pin.name,
            driver=driver,
            torch=pin.torch.version,
            shard=shard,
            shards=shards,
        )
        for pin in pins
        if pin.torch
        for driver in dict.fromkeys(drivers)
        for shard in range(1, shards + 1)
    ]
    if not jobs:
        raise CiError("none of these pins has a version: there is nothing to run")
    if len(jobs) > MATRIX_LIMIT:
        raise CiError(f"{len(jobs)} jobs: GitHub takes {MATRIX_LIMIT} of one matrix")
    return json.dumps(document.plain(Matrix(tuple(jobs))))


def resolved(pin: Pin) -> Torch:
    """The pin's torch; CiError if it has none yet."""
    if pin.torch is None:
        raise CiError(f"pin {pin.name} has no version: {pin.unresolved}")
    return pin.torch


def _paragraph(pin: Pin) -> str:
    lines = [f"{pin.name}: no version: {pin.unresolved}"]
    if pin.torch:
        lines = [f"{pin.name}: torch {pin.torch.version}", f"  commit  {pin.torch.git_version}"]
        lines += [f"  wheel   {w.file} {w.sha256 or '(unhashed)'}" for w in pin.torch.wheels]
    lines += [f"  index   {pin.index}", f"  source  {pin.source.value}", f"  reason  {pin.reason}"]
    return "\n".join(lines) + "\n"
