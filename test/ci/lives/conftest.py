# SPDX-License-Identifier: BSD-3-Clause
"""The lives that are played, each once, whichever tests look at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from workflow_runner.expressions import Expressions

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
def pull_request(
    expressions: Expressions, tmp_path_factory: pytest.TempPathFactory
) -> of_a_pull_request.Life:
    return of_a_pull_request.play(expressions, tmp_path_factory.mktemp("pull-request"))


@pytest.fixture(scope="session")
def night(expressions: Expressions, tmp_path_factory: pytest.TempPathFactory) -> of_a_night.Life:
    return of_a_night.play(expressions, tmp_path_factory.mktemp("night"))


@pytest.fixture(scope="session")
def pins(expressions: Expressions, tmp_path_factory: pytest.TempPathFactory) -> of_the_pins.Life:
    return of_the_pins.play(expressions, tmp_path_factory.mktemp("pins"))


@pytest.fixture(scope="session")
def vendor(expressions: Expressions, tmp_path_factory: pytest.TempPathFactory) -> of_a_vendor.Life:
    return of_a_vendor.play(expressions, tmp_path_factory.mktemp("vendor"))


@pytest.fixture(scope="session")
def relay(expressions: Expressions, tmp_path_factory: pytest.TempPathFactory) -> of_the_relay.Life:
    return of_the_relay.play(expressions, tmp_path_factory.mktemp("relay"))


@pytest.fixture(scope="session")
def release(
    expressions: Expressions, tmp_path_factory: pytest.TempPathFactory
) -> of_a_release.Life:
    return of_a_release.play(expressions, tmp_path_factory.mktemp("release"))
