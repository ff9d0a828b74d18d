# SPDX-License-Identifier: BSD-3-Clause
"""PUONE_DRIVER, and what is said when the driver it names cannot be used."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from interpreter import Python
from suites import NO_GPU, needs_cuda_driver

REPORT = """
import json, torch, reference_backend
info = torch.puone.driver_info()
assert torch.puone.is_available() == info["available"] == (torch.puone.device_count() > 0)
try:
    torch.empty(1, device="puone")
    error = ""
except RuntimeError as caught:
    error = str(caught)
print(json.dumps({**info, "raised": error}))
"""


def report(python: Python, driver: str | None = None, **env: str) -> dict[str, Any]:
    """What the module says about its driver, and what a first allocation says."""
    done = python(REPORT, env={**env, **({"PUONE_DRIVER": driver} if driver else {})})
    assert done.returncode == 0, done.stderr
    info: dict[str, Any] = json.loads(done.stdout)
    return info


def test_sim_is_chosen_by_name_and_by_path(python: Python) -> None:
    by_name = report(python, "sim")
    assert by_name["available"]
    assert by_name["name"] == "sim"
    assert by_name["error"] == by_name["raised"] == ""
    assert {"streams", "events", "memory", "kernels"} <= set(by_name["capabilities"])
    assert report(python, by_name["path"]) == by_name


def test_without_a_choice_there_is_a_device_on_every_machine(python: Python) -> None:
    assert report(python)["available"]


@needs_cuda_driver
def test_the_cuda_driver_loads_without_a_gpu(python: Python) -> None:
    info = report(python, "cuda", **NO_GPU)
    assert (info["name"], info["available"]) == ("cuda", False)
    assert {"streams", "events", "memory", "kernels"} <= set(info["capabilities"])
    assert info["raised"].startswith("puone is not available: ")
    assert "has no device" in info["raised"]


@needs_cuda_driver
def test_without_a_gpu_the_choice_falls_on_sim(python: Python) -> None:
    assert report(python, **NO_GPU)["name"] == "sim"


def test_the_template_driver_loads_and_offers_nothing(python: Python) -> None:
    info = report(python, "template")
    assert info["name"] == "template"
    assert not info["available"]
    assert info["capabilities"] == []
    assert info["raised"].startswith("puone is not available: ")
    assert "has no device" in info["raised"]


@pytest.mark.parametrize("choice", ["nosuch", "/nosuch/libpuone_x.so"])
def test_a_driver_that_is_not_there_is_named(python: Python, choice: str) -> None:
    info = report(python, choice)
    assert not info["available"]
    assert info["error"].startswith("cannot open driver: ")
    assert choice in info["error"]
    assert info["error"] in info["raised"]


# Each is the body of a C library; the loader must say what is wrong with it.
HEADER = """
#include "hal/hal.h"
static puone_status ok(void) { return PUONE_OK; }
static puone_status count(int32_t* out) { *out = 1; return PUONE_OK; }
static puone_status broken(void) { return PUONE_INTERNAL; }
static const char* text(void) { return "the cable is loose"; }
static puone_status describe_as(puone_driver_info* out, uint64_t capabilities) {
  out->name = "odd"; out->vendor = ""; out->version = "1"; out->capabilities = capabilities;
  return PUONE_OK;
}
static puone_status plain(puone_driver_info* out) { return describe_as(out, 0); }
static puone_status boasting(puone_driver_info* out) { return describe_as(out, PUONE_CAP_STREAMS); }
#define EXPORT(...) \\
  puone_status puone_hal_get(uint32_t abi_major, const puone_hal_api** out) { \\
    static const puone_hal_api api = {__VA_ARGS__}; (void)abi_major; *out = &api; return PUONE_OK; }
#define SIZE .struct_size = sizeof(puone_hal_api)
#define BASE .init = ok, .shutdown = ok, .last_error_message = text, .device_count = count
"""

BAD_DRIVERS = {
    "symbol missing": ("int unrelated(void) { return 0; }", "does not export puone_hal_get()"),
    "major refused": (
        "puone_status puone_hal_get(uint32_t m, const puone_hal_api** out) "
        "{ (void)m; (void)out; return PUONE_UNSUPPORTED; }",
        "does not offer HAL ABI major 1",
    ),
    "wrong major": ("EXPORT(SIZE, .abi_major = 7, BASE, .describe = plain)", "HAL ABI major 7"),
    "table too short": (
        "EXPORT(.struct_size = 64, .abi_major = 1, BASE, .describe = plain)",
        "has a table of 64 bytes",
    ),
    "cannot describe": ("EXPORT(SIZE, .abi_major = 1, BASE)", "cannot describe itself"),
    "entry absent although declared": (
        "EXPORT(SIZE, .abi_major = 1, BASE, .describe = boasting)",
        "declares the capability of device_synchronize but its table has no such entry",
    ),
    "init fails": (
        "EXPORT(SIZE, .abi_major = 1, .init = broken, .shutdown = ok, .last_error_message = text, "
        ".device_count = count, .describe = plain)",
        "failed to initialise: the cable is loose",
    ),
}


@pytest.mark.parametrize("case", BAD_DRIVERS, ids=lambda case: case.replace(" ", "-"))
def test_a_bad_driver_is_refused_with_its_reason(
    python: Python, root: Path, tmp_path: Path, case: str
) -> None:
    body, reason = BAD_DRIVERS[case]
    source, library = tmp_path / "odd.c", tmp_path / "libpuone_odd.so"
    source.write_text(HEADER + body + "\n")
    subprocess.run(
        ["cc", "-std=c99", "-shared", "-fPIC", f"-I{root}/csrc", "-o", library, source], check=True
    )
    info = report(python, str(library))
    assert not info["available"]
    assert reason in info["error"]
    assert str(library) in info["error"]
    assert info["error"] in info["raised"]
