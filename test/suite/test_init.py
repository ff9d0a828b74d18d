# SPDX-License-Identifier: BSD-3-Clause
"""`python -m torch_conformance init` describes a new backend, or says why it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torch_conformance.bringup import packages
from torch_conformance.bringup.loading import advice
from torch_conformance.bringup.packages import Candidate
from torch_conformance.bringup.scout import scout
from torch_conformance.spec import descriptor
from torch_conformance.spec.outcome import LoadProblem

ROOT = Path(__file__).resolve().parents[2]
FRESHCHIP = ROOT / "test" / "subjects" / "freshchip"

# Modules of backends that do not come up, and what init says of each.
BROKEN = {
    "import os; os.abort()": "SIGABRT while loading torch, torch_broken",
    "import time; time.sleep(60)": "takes more than 5 s",
    "import torch_nowhere": "No module named 'torch_nowhere'\ndescriptor or installation wrong",
}


def install(
    folder: Path,
    package: str,
    module: str,
    code: str,
    entry: str = "",
    needs: str = "Requires-Dist: torch>=2.11\n",
) -> None:
    """Make a distribution as pip installs it, with one module and maybe an entry point."""
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n{needs}")
    (info / "top_level.txt").write_text(f"{module}\n")
    if entry:
        (info / "entry_points.txt").write_text(f"[torch.backends]\n{entry}\n")


def init(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the verb in a directory in which modules can be put."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "conformance" / "src", folder, FRESHCHIP)))
    return subprocess.run(
        [sys.executable, "-m", "torch_conformance", "init", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_descriptor_is_written_that_the_suite_reads(tmp_path: Path) -> None:
    done = init(tmp_path, "freshchip", "--import", "torch_freshchip")
    assert done.returncode == 0, done.stderr
    assert "--backend-file freshchip.yaml --tier smoke" in done.stdout
    file = tmp_path / "freshchip.yaml"
    found = descriptor.load(file)
    assert found.device_type == found.name == "freshchip"
    assert found.imports.after_torch == ("torch_freshchip",)
    assert (found.module, found.start_method) == ("torch.freshchip", "fork")
    # What was probed is a comment, which turns into a declaration when it is uncommented.
    assert found.capabilities == {}
    lines = file.read_text().splitlines()
    uncommented = [
        line.removeprefix("# ") for line in lines if line.startswith(("# capabilities:", "#   "))
    ]
    (tmp_path / "declared.yaml").write_text("\n".join(["device_type: x", *uncommented]))
    declared = descriptor.load(tmp_path / "declared.yaml").capabilities
    assert (declared["complex64"], declared["generator"]) == (True, False)


def test_a_descriptor_is_not_replaced_without_being_told(tmp_path: Path) -> None:
    (tmp_path / "mychip.yaml").write_text("mine")
    done = init(tmp_path, "mychip", "--import", "torch_mychip")
    assert done.returncode == 4
    assert "mychip.yaml exists; --force" in done.stderr
    assert (tmp_path / "mychip.yaml").read_text() == "mine"


@pytest.mark.parametrize("code", BROKEN)
def test_a_backend_that_does_not_come_up_is_a_reason(tmp_path: Path, code: str) -> None:
    (tmp_path / "torch_broken.py").write_text(code)
    # Short only where it has to run out: torch itself may take seconds to import.
    deadline = "5" if "5 s" in BROKEN[code] else "60"
    done = init(tmp_path, "broken", "--import", "torch_broken", "--deadline", deadline)
    assert done.returncode == 4
    assert BROKEN[code] in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "broken.yaml").exists()


@pytest.mark.nightly
def test_what_to_import_is_asked_for(tmp_path: Path) -> None:
    done = init(tmp_path, "mychip")
    assert done.returncode == 4
    assert "Say it: --import torch_mychip" in done.stderr


@pytest.mark.nightly
def test_a_backend_that_bears_no_fork_is_spawned(tmp_path: Path) -> None:
    (tmp_path / "torch_shy.py").write_text(
        "import sys\n"
        "if 'torch_conformance.bringup.survey' in sys.modules:\n"
        "    raise ImportError('loaded in a forked process')\n"
        "import torch_freshchip\n"
    )
    done = init(tmp_path, "shy", "--import", "torch_shy", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert "# forked workers could not load it: ImportError: loaded in a forked" in done.stdout
    assert "start_method: spawn" in done.stdout


@pytest.mark.nightly
def test_a_package_is_found_that_announces_the_device_under_another_name(tmp_path: Path) -> None:
    code = "import torch_freshchip\ndef load():\n    pass\n"
    install(tmp_path, "vendor-sdk", "sdk_plugin", code, "vendor = sdk_plugin:load")
    done = init(tmp_path, "freshchip", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert "import: {after_torch: [sdk_plugin]}" in done.stdout
    assert "autoload: true" in done.stdout


def test_a_device_that_only_the_call_of_an_entry_point_makes_is_loaded_as_torch_does(
    tmp_path: Path,
) -> None:
    code = "def load():\n    import torch_freshchip\n"
    install(tmp_path, "vendor-sdk", "sdk_plugin", code, "vendor = sdk_plugin:load")
    candidate = Candidate(("sdk_plugin",), "sdk_plugin:load")
    path = os.pathsep.join(map(str, (tmp_path, FRESHCHIP)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        found = scout(candidate, None, 60.0)
    assert (found.privateuse1, found.called) == ("freshchip", True)


@pytest.mark.nightly
def test_a_package_is_found_whose_import_has_another_name(tmp_path: Path) -> None:
    install(tmp_path, "freshchip-accelerator", "fca", "import torch_freshchip\n")
    install(tmp_path, "freshchip-tools", "fct", "raise ImportError('no device')\n")
    done = init(
        tmp_path, "freshchip", "-o", "-", FRESHCHIP_LOG="3", FCA_MODE="fast", FCA_API_KEY="s3"
    )
    assert done.returncode == 0, done.stderr
    assert "import: {after_torch: [fca]}" in done.stdout
    assert 'env: {FCA_MODE: "fast", FRESHCHIP_LOG: "3"}' in done.stdout
    assert "s3" not in done.stdout


@pytest.mark.nightly
def test_a_package_for_torch_is_found_that_does_not_say_what_it_needs(tmp_path: Path) -> None:
    install(tmp_path, "freshchip-sdk", "freshchip_sdk", "raise ImportError('no device')", needs="")
    install(tmp_path, "freshchip-torch", "fct", "import torch_freshchip\n", needs="")
    done = init(tmp_path, "freshchip", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert "import: {after_torch: [fct]}" in done.stdout


@pytest.mark.nightly
def test_a_device_that_a_call_makes_is_set_up(tmp_path: Path) -> None:
    (tmp_path / "cloud.py").write_text(
        "class Machine:\n"
        "    def __init__(self):\n"
        "        import torch_freshchip\n"
        "        self.device = 'freshchip'\n"
        "def rent():\n"
        "    return Machine()\n"
    )
    done = init(tmp_path, "cloud", "--setup", "cloud:rent")
    assert done.returncode == 0, done.stderr
    found = descriptor.load(tmp_path / "cloud.yaml")
    assert (found.device_type, found.device.setup) == ("freshchip", "cloud:rent")
    assert init(tmp_path, "other", "--setup", "cloud").returncode == 4


@pytest.mark.nightly
def test_what_forks_and_threads_cannot_do_is_denied_with_what_was_seen(tmp_path: Path) -> None:
    (tmp_path / "torch_lonely.py").write_text(
        "import os, threading, torch, torch_freshchip\n"
        "owner, home, plain = os.getpid(), threading.get_ident(), torch.ones\n"
        "def ones(*sizes, **options):\n"
        "    forked = os.getpid() != owner\n"
        "    if forked or threading.get_ident() != home:\n"
        "        raise RuntimeError('one process, one thread')\n"
        "    return plain(*sizes, **options)\n"
        "torch.ones = ones\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    done = init(tmp_path, "lonely", "--import", "torch_lonely")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "lonely.yaml").read_text()
    assert "ends with status 1; loading starts 1 threads)" in text
    assert "a thread that uses the device gets RuntimeError: one process, one thread" in text
    found = descriptor.load(tmp_path / "lonely.yaml")
    assert found.capabilities == {"fork": False, "threads": False}


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("npu", "torch_npu", True),
        ("npu", "torch-npu:_autoload", True),
        ("mychip", "MyChip-torch", True),
        ("torch_mychip", "torch_mychip.load", True),
        ("mychip", "torchmychip", True),
        ("mychip", "mychiptorch.load", True),
        ("chip", "mychip", False),
        ("npu", "input", False),
    ],
)
def test_a_name_is_found_as_a_word(name: str, text: str, named: bool) -> None:
    assert packages.has_word(name, text) is named


@pytest.mark.parametrize(
    ("reason", "side"),
    [
        ("ModuleNotFoundError: No module named 'torch.mychip'", "descriptor or backend wrong"),
        (
            "RuntimeError: Expected one of cpu, cuda device type at start of device string: mychip",
            "descriptor wrong",
        ),
        (LoadProblem.DIED, "backend wrong"),
        (LoadProblem.TOO_SLOW, "descriptor or backend wrong"),
        (LoadProblem.NO_DEVICE, "installation wrong"),
        (LoadProblem.WRONG_TORCH, "descriptor or installation wrong"),
        (LoadProblem.NO_TORCH, "installation wrong"),
        ("RuntimeError: nothing known", None),
    ],
)
def test_the_advice_says_which_side_is_wrong(reason: str | LoadProblem, side: str | None) -> None:
    hint = advice("x", reason) if isinstance(reason, LoadProblem) else advice(reason)
    assert (hint is None) if side is None else (hint is not None and hint.startswith(side))
