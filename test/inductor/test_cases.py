# SPDX-License-Identifier: BSD-3-Clause
"""Compiled functions compute what eager ones do, on every driver, and compile for cards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import CASES, FEW
from driver_in_child import with_driver
from nvrtc import NVRTC, needs_nvrtc
from scripts import run
from suites import CUDA, FAKE_NVRTC, NO_GPU, SIM, STANDIN, needs_cuda_driver, needs_standin

from hal_conformance import abi, modules
from hal_conformance.abi import Status
from hal_conformance.driver import Driver

HERE = Path(__file__).parent
Found = dict[str, Any]
# All of them take minutes; one of each layout is what a change of the generator meets first.
OTHERS = [name for name in CASES if name not in FEW]


def compiled(directory: Path, names: Sequence[str], **environment: str) -> Found:
    """What compiled.py finds, in a process that shares no cache with others."""
    output = directory / "result.json"
    run("compiled.py", output, *names, directory=directory, **environment)
    result: Found = json.loads(output.read_text())
    return result


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(FEW, id="few"),
        pytest.param(OTHERS, id="others", marks=pytest.mark.nightly),
    ],
)
def on_sim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Under the sanitizer, which knows of kernels what the generator declares of them."""
    directory = tmp_path_factory.mktemp("sim")
    return compiled(directory, request.param, PUONE_DRIVER=str(SIM), PUONE_SANITIZE="raise")


@pytest.fixture(scope="module")
def over_standin(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return compiled(
        tmp_path_factory.mktemp("standin"),
        FEW,
        PUONE_DRIVER=str(STANDIN),
        PUONE_CUDA_NVRTC=str(FAKE_NVRTC),
    )


def test_compiled_is_eager(on_sim: Found) -> None:
    assert on_sim["cases"]
    assert {name: found for name, found in on_sim["cases"].items() if found} == {}


@pytest.mark.nightly
@needs_standin
@pytest.mark.parametrize("name", FEW)
def test_the_same_source_runs_on_a_grid_of_threads(over_standin: Found, name: str) -> None:
    assert over_standin["cases"][name] == ""


def test_most_cases_are_kernels(on_sim: Found) -> None:
    """Otherwise they would say nothing about the generator."""
    assert len(on_sim["kernels"]) >= len(on_sim["cases"]) > 10


@needs_cuda_driver
@needs_nvrtc
def test_every_kernel_compiles_for_a_card(on_sim: Found) -> None:
    sources = [source.encode() for source in on_sim["kernels"]]

    def work(hal: Driver) -> list[str]:
        hal.ok(hal.api.init())
        target = abi.ModuleOptions(target=b"sm_90")
        return [
            f"{hal.message()}\n{source.decode()}"
            for source in sources
            if modules.try_compile(hal, source, target)[0] != Status.OK
        ]

    environment = {"PUONE_MODULE_CACHE": "none", "PUONE_CUDA_NVRTC": str(NVRTC), **NO_GPU}
    ending = with_driver(CUDA, environment, work)
    assert str(ending) == "exit status 0"
    assert ending.payload.decode() == "[]"
