# SPDX-License-Identifier: BSD-3-Clause
"""The lives that are played, each once, whichever tests look at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from workflow_runner.expressions import Expressions
from workflow_runner.record import Record

from lives import of_a_pull_request


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
