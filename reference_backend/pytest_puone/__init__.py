# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin: tests of a program run on the simulated accelerator, each in its own process.

pytest loads this module in every run of an environment that has torch-puone, so it imports neither
torch nor the other modules of this package; those are for runs with a test that is marked `puone`
or uses one of the fixtures below. It is a package beside torch_puone because importing that one
imports torch. docs/for-applications.md describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from .settings import FIXTURES, MARKER, SCHEDULE, Settings, settings_of

if TYPE_CHECKING:
    import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    parser.getgroup("puone", "tests on the simulated accelerator puone").addoption(
        "--puone-schedules",
        type=int,
        metavar="N",
        help="run every test that is marked puone under N adversarial schedules as well, instead "
        "of as many as its marker says",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, with the keywords and defaults of its settings."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}({Settings.signature()}): run the test on the simulated accelerator puone, in a "
        "process of its own, and fail it for what the stream sanitizer finds",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each schedule: the ordinary one, then the adversarial ones by their seeds."""
    settings = settings_of(metafunc.definition)
    if settings is None or settings.schedules == 0:
        return
    metafunc.fixturenames.append(SCHEDULE)
    seeds = range(settings.schedules)
    ids = ["ordinary", *(f"schedule{seed}" for seed in seeds)]
    metafunc.parametrize(SCHEDULE, [None, *seeds], ids=ids, indirect=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Prepare for the tests that are marked, if there are any that this process runs."""
    if session.config.option.collectonly or not any(map(settings_of, session.items)):
        return
    from .running import Runner

    session.config.pluginmanager.register(Runner(session))


@pytest.fixture(name=SCHEDULE)
def _schedule(request: pytest.FixtureRequest) -> int | None:
    seed: int | None = request.param
    return seed


@pytest.fixture
def puone_device() -> torch.device:
    """The simulated device of index 0."""
    import torch

    return torch.device("puone", 0)


@pytest.fixture
def puone_faults() -> Iterator[ModuleType]:
    """The module `torch_puone.faults`; what was injected is cleared after the test."""
    from torch_puone import faults

    yield faults
    faults.reset()


@pytest.fixture
def puone_fallbacks() -> Callable[[], dict[str, int]]:
    """Call it for the operators that ran on the CPU so far in this test, and how often."""
    from .observing import fallbacks

    return fallbacks


assert {"puone_device", "puone_faults", "puone_fallbacks"} == FIXTURES
