# SPDX-License-Identifier: BSD-3-Clause
"""PUONE_DRIVER, what is taken without it, and what is said when a driver cannot be used."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from interpreter import WITHOUT_EDITABLE, Python
from suites import NO_GPU, needs_cuda_driver

REPORT = """
import json, torch, torch_puone
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


def test_the_driver_over_host_memory_has_a_device(python: Python) -> None:
    info = report(python, "host")
    assert (info["name"], info["available"], info["error"]) == ("host", True, "")
    assert {"streams", "events", "memory", "kernels"} <= set(info["capabilities"])


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
    info = report(python, **NO_GPU)
    assert (info["name"], info["available"], info["error"]) == ("sim", True, "")
    assert f"{HARDWARE} has no device" in info["passed_over"]


def test_the_template_driver_loads_and_offers_nothing(python: Python) -> None:
    info = report(python, "template")
    assert info["name"] == "template"
    assert not info["available"]
    assert info["capabilities"] == []
    assert info["raised"].startswith("puone is not available: ")
    assert "has no device" in info["raised"]


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ("nosuch", "there is no driver nosuch"),
        ("/nosuch/libpuone_x.so", "cannot open driver: /nosuch/libpuone_x.so: "),
        ("libpuone_nosuch.so", "cannot open driver: libpuone_nosuch.so: "),
        (300 * "x", "there is no driver " + 300 * "x"),
        ("/" + 300 * "x", "cannot open driver: /" + 300 * "x"),
    ],
    ids=["name", "path", "library", "long-name", "long-path"],
)
def test_a_driver_that_is_not_there_is_named_with_those_that_are(
    python: Python, choice: str, reason: str
) -> None:
    info = report(python, choice)
    assert not info["available"]
    assert info["error"].startswith(reason)
    assert f"(PUONE_DRIVER={choice}; it is a path, or the name of one of: " in info["error"]
    names = info["error"].rpartition("one of: ")[2].rstrip(")").split(", ")
    assert {"sim", "template"} <= set(names) <= {"cuda", "host", "sim", "template"}, (
        "others are for tests"
    )
    assert info["error"] in info["raised"]


# Each is the body of a C library; the loader must say what is wrong with it.
HEADER = """
#include "hal/hal.h"
static puone_status ok(void) { return PUONE_OK; }
static puone_status count(int32_t* out) { *out = 1; return PUONE_OK; }
static puone_status nothing(int32_t* out) { *out = 0; return PUONE_OK; }
static puone_status uncounted(int32_t* out) { (void)out; return PUONE_INTERNAL; }
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
        "does not offer HAL ABI major 2",
    ),
    "wrong major": ("EXPORT(SIZE, .abi_major = 7, BASE, .describe = plain)", "HAL ABI major 7"),
    "table too short": (
        "EXPORT(.struct_size = 64, .abi_major = 2, BASE, .describe = plain)",
        "has a table of 64 bytes",
    ),
    "cannot describe": ("EXPORT(SIZE, .abi_major = 2, BASE)", "cannot describe itself"),
    "entry absent although declared": (
        "EXPORT(SIZE, .abi_major = 2, BASE, .describe = boasting)",
        "has no entry device_synchronize: the driver declares the capability of it",
    ),
    "entry absent that every driver has": (
        "EXPORT(SIZE, .abi_major = 2, .init = ok, .last_error_message = text, "
        ".device_count = count, .describe = plain)",
        "has no entry shutdown: every driver must have it",
    ),
    "devices cannot be counted": (
        "EXPORT(SIZE, .abi_major = 2, .init = ok, .shutdown = ok, .last_error_message = text, "
        ".device_count = uncounted, .describe = plain)",
        "cannot use its devices: the cable is loose",
    ),
    "init fails": (
        "EXPORT(SIZE, .abi_major = 2, .init = broken, .shutdown = ok, .last_error_message = text, "
        ".device_count = count, .describe = plain)",
        "failed to initialise: the cable is loose",
    ),
}


def compile_driver(root: Path, body: str, library: Path) -> None:
    """Make a driver of the header above and a body."""
    source = library.with_suffix(".c")
    source.write_text(HEADER + body + "\n")
    subprocess.run(
        ["cc", "-std=c99", "-shared", "-fPIC", f"-I{root}/csrc", "-o", library, source], check=True
    )


@pytest.mark.parametrize("case", BAD_DRIVERS, ids=lambda case: case.replace(" ", "-"))
def test_a_bad_driver_is_refused_with_its_reason(
    python: Python, root: Path, tmp_path: Path, case: str
) -> None:
    body, reason = BAD_DRIVERS[case]
    library = tmp_path / "libpuone_odd.so"
    compile_driver(root, body, library)
    info = report(python, str(library))
    assert not info["available"]
    assert reason in info["error"]
    assert str(library) in info["error"]
    assert info["error"] in info["raised"]


def test_validation_wraps_any_driver(python: Python) -> None:
    """Once: sim's table is wrapped as it is."""
    assert "validation" not in report(python, "template")["capabilities"]
    assert report(python, "template", PUONE_VALIDATE="1")["capabilities"] == ["validation"]
    assert "validation" in report(python, "sim")["capabilities"]
    assert report(python, "sim", PUONE_VALIDATE="1") == report(python, "sim")


def test_a_wrong_value_of_validation_is_named(python: Python) -> None:
    error = report(python, "sim", PUONE_VALIDATE="yes")["error"]
    assert error.startswith("PUONE_VALIDATE=yes is not valid: expected 0 or 1")


# ---- without a choice, in a package that is installed ----------------------------------------

HARDWARE = "libpuone_cuda.so"
DRIVERS = ("cuda", "host", "sim", "template")


@pytest.fixture(scope="module")
def installed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel contains, in a directory of its own, and its drivers beside it."""
    folder = tmp_path_factory.mktemp("installed")
    install = ["cmake", "--install", str(root / "build"), "--prefix", str(folder)]
    subprocess.run(install, check=True, capture_output=True)
    package = root / "reference_backend" / "torch_puone"
    for module in package.rglob("*.py"):
        copy = folder / "torch_puone" / module.relative_to(package)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(module, copy)
    return folder


def report_of(python: Python, installed: Path) -> dict[str, Any]:
    """What the installed package says when nothing is chosen; it says nothing unasked."""
    code = WITHOUT_EDITABLE + "sys.path.remove('')\n" + REPORT  # '' is this checkout
    done = python(code, env={"PYTHONPATH": str(installed)})
    assert (done.returncode, done.stderr) == (0, "")
    info: dict[str, Any] = json.loads(done.stdout)
    assert Path(info["path"]).parent == installed / "torch_puone" / "lib"
    return info


def test_every_driver_that_was_built_is_installed(root: Path, installed: Path) -> None:
    libraries = {f"libpuone_{name}.so" for name in DRIVERS}
    built = {file.name for file in (root / "build" / "lib").iterdir()} & libraries
    assert {"libpuone_sim.so", "libpuone_template.so"} <= built
    assert {file.name for file in (installed / "torch_puone" / "lib").iterdir()} == {
        *built,
        "libtorch_puone.so",
    }


def test_an_installed_package_finds_its_drivers(python: Python, installed: Path) -> None:
    info = report_of(python, installed)
    assert info["available"]
    assert info["name"] in ("cuda", "sim")
    has_hardware = (Path(info["path"]).parent / HARDWARE).exists()
    assert bool(info["passed_over"]) == (has_hardware and info["name"] == "sim")


#: What stands in the place of the driver for hardware, and why it is not taken.
UNUSABLE = {
    "no device": (
        "EXPORT(SIZE, .abi_major = 2, .init = ok, .shutdown = ok, .last_error_message = text, "
        ".device_count = nothing, .describe = plain)",
        "has no device",
    ),
    "devices cannot be counted": BAD_DRIVERS["devices cannot be counted"],
    "init fails": BAD_DRIVERS["init fails"],
    "symbol missing": BAD_DRIVERS["symbol missing"],
}


@pytest.fixture
def other_hardware(installed: Path, tmp_path: Path) -> Path:
    """A copy of the installed package, whose driver for hardware a test may replace."""
    return Path(shutil.copytree(installed, tmp_path / "copy"))


@pytest.mark.parametrize("case", UNUSABLE, ids=lambda case: case.replace(" ", "-"))
def test_hardware_that_cannot_be_used_is_passed_over_in_silence(
    python: Python, root: Path, other_hardware: Path, case: str
) -> None:
    body, reason = UNUSABLE[case]
    library = other_hardware / "torch_puone" / "lib" / HARDWARE
    compile_driver(root, body, library)
    info = report_of(python, other_hardware)
    assert (info["name"], info["available"], info["error"], info["raised"]) == ("sim", True, "", "")
    assert reason in info["passed_over"]
    assert str(library) in info["passed_over"]


def test_hardware_that_has_a_device_is_taken(
    python: Python, root: Path, other_hardware: Path
) -> None:
    body = "EXPORT(SIZE, .abi_major = 2, BASE, .describe = plain)"
    compile_driver(root, body, other_hardware / "torch_puone" / "lib" / HARDWARE)
    info = report_of(python, other_hardware)
    assert (info["name"], info["available"], info["passed_over"]) == ("odd", True, "")


def test_the_driver_can_be_chosen_again_until_a_device_was_used(python: Python) -> None:
    code = """
import os, torch, torch_puone
from torch_puone import _C
assert torch.accelerator.device_count() == 2
os.environ["PUONE_SIM_DEVICES"] = "5"
_C.choose_driver_again()
assert torch.accelerator.device_count() == 5
assert torch.ones(2, device="puone:4").sum().item() == 2
try:
    _C.choose_driver_again()
except RuntimeError as error:
    print(error)
"""
    done = python(code, env={"PUONE_DRIVER": "sim"})
    assert done.returncode == 0, done.stderr
    assert "cannot be chosen again: puone has used a device" in done.stdout
