# SPDX-License-Identifier: BSD-3-Clause
"""The lives that are played, each once, whichever tests look at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from workflow_runner.expressions import Expressions
from workflow_runner.record import Record

from lives import (
    of_a_night,
    of_a_pull_request,
    of_a_release,
    of_a_vendor,
    of_the_pins,
    of_the_relay,
)


@pytest.fixture(scope="session")
def expressions() -> Iterator[Expressions]:
    with Expressions() as process:
        yield process


@pytest.fixture(scope="session")
def record() -> Record:
    """Every step that any of the lives has played."""
    return Record()


@pytest.fixture(scope="session")
def pull_request(
    expressions: Expressions, record: Record, tmp_path_factory: pytest.TempPathFactory
) -> of_a_pull_request.Life:
    return of_a_pull_request.play(expressions, record, tmp_path_factory.mktemp("pull-request"))


@pytest.fixture(scope="session")
def night(
    expressions: Expressions, record: Record, tmp_path_factory: pytest.TempPathFactory
) -> of_a_night.Life:
    return of_a_night.play(expressions, record, tmp_path_factory.mktemp("night"))


@pytest.fixture(scope="session")
def pins(
    expressions: Expressions, record: Record, tmp_path_factory: pytest.TempPathFactory
) -> of_the_pins.Life:
    return of_the_pins.play(expressions, record, tmp_path_factory.mktemp("pins"))


@pytest.fixture(scope="session")
def vendor(
    expressions: Expressions, record: Record, tmp_path_factory: pytest.TempPathFactory
) -> of_a_vendor.Life:
    return of_a_vendor.play(expressions, record, tmp_path_factory.mktemp("vendor"))


@pytest.fixture(scope="session")
def relay(
    expressions: Expressions, record: Record, tmp_path_factory: pytest.TempPathFactory
) -> of_the_relay.Life:
    return of_the_relay.play(expressions, record, tmp_path_factory.mktemp("relay"))


@pytest.fixture(scope="session")
def release(
    expressions: Expressions, record: Record, tmp_path_factory: pytest.TempPathFactory
) -> of_a_release.Life:
    return of_a_release.play(expressions, record, tmp_path_factory.mktemp("release"))
