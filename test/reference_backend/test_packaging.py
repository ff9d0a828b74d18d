# SPDX-License-Identifier: BSD-3-Clause
"""What pip is told: about the torch that is missing, hidden, or another one than compiled for."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from email.message import Message
from importlib import metadata
from pathlib import Path

import build_backend
import pytest
from interpreter import Python

from torch_puone._compatibility import TorchBuild, mismatch

ROOT = Path(__file__).resolve().parents[2]
COMMIT, OTHER_COMMIT = "a" * 40, "b" * 40


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment without any package."""
    venv.create(tmp_path / "venv", with_pip=False)
    return tmp_path / "venv"


def site_packages(environment: Path) -> Path:
    """Where its packages are."""
    base = {"base": str(environment), "platbase": str(environment)}
    return Path(sysconfig.get_path("purelib", vars=base))


def pip_install(environment: Path, *options: str) -> str:
    """What `pip install` of this checkout says when it fails; it can download nothing."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV")
    command = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    done = subprocess.run(
        [*command, "install", "--no-index", *options, str(ROOT)],
        env={key: value for key, value in os.environ.items() if key not in hidden},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    return done.stdout + done.stderr


def install_torch(environment: Path, version: str) -> Path:
    """Put the files of a torch that are looked at into an environment; where they are."""
    folder = site_packages(environment)
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("")
    (folder / "torch" / "version.py").write_text(f"__version__ = '{version}'\n")
    return folder


def test_without_torch_pip_says_so_before_it_downloads_anything(environment: Path) -> None:
    said = pip_install(environment)
    assert "torch-puone cannot be built: torch is not installed for" in said
    assert "pip install torch\n" in said
    assert "again with --no-build-isolation" in said


def test_torch_that_build_isolation_hides_is_told_apart(environment: Path) -> None:
    folder = install_torch(environment, "2.13.0+cpu")
    said = pip_install(environment)
    assert f"torch is installed in {folder}, but build isolation hides it" in said
    assert "pip install torch\n" not in said


def test_torch_that_is_too_old_is_refused_before_anything_is_built(environment: Path) -> None:
    install_torch(environment, "2.10.0")
    said = pip_install(environment, "--no-build-isolation")
    assert (
        "torch-puone cannot be built: torch 2.10.0 is too old: 2.11 or newer is needed. Run\n"
    ) in said
    assert 'pip install "torch>=2.11"\n' in said
    assert "scikit-build-core" not in said


def test_without_isolation_missing_build_tools_are_named(environment: Path) -> None:
    install_torch(environment, "2.13.0+cpu")
    said = pip_install(environment, "--no-build-isolation")
    assert 'pip install "scikit-build-core>=1.1" "pybind11>=2.13" "pyyaml>=6" cmake ninja' in said


def _required(fields: Message) -> list[str]:
    """What the package needs in any case, without its extras."""
    return [one for one in fields.get_all("Requires-Dist", []) if "extra ==" not in one]


def test_a_wheel_requires_the_torch_it_is_compiled_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    written = tmp_path / build_backend.prepare_metadata_for_build_wheel(str(tmp_path))
    fields = email.message_from_string((written / "METADATA").read_text())
    wanted = build_backend.specifier(metadata.version("torch"))
    assert _required(fields) == [f"torch{wanted}"]


def test_the_source_requires_any_supported_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    archive = tmp_path / build_backend.build_sdist(str(tmp_path))
    with tarfile.open(archive) as opened:
        (member,) = (m for m in opened if m.name.endswith("/PKG-INFO"))
        file = opened.extractfile(member)
        assert file is not None
        fields = email.message_from_bytes(file.read())
    assert _required(fields) == ["torch>=2.11"]
    assert "Requires-Dist" in fields.get_all("Dynamic", [])


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("2.13.0", "==2.13.*"),
        ("2.13.1+cu130", "==2.13.*"),
        ("2.15.0.dev20261101+cpu", "==2.15.0.dev20261101"),
        ("2.15.0a0+git1234567", "==2.15.0a0"),
        ("2.14.0rc1", "==2.14.0rc1"),
    ],
)
def test_which_torch_a_wheel_requires(version: str, wanted: str) -> None:
    assert build_backend.specifier(version) == wanted


@pytest.mark.parametrize(
    ("installed", "commit"),
    [("2.13.0+cpu", COMMIT), ("2.13.0+cu130", OTHER_COMMIT), ("2.13.1", OTHER_COMMIT)],
)
def test_releases_of_one_minor_version_fit(installed: str, commit: str) -> None:
    assert mismatch(TorchBuild("2.13.0+cpu", COMMIT), TorchBuild(installed, commit)) is None


@pytest.mark.parametrize("version", ["2.15.0.dev20261101+cpu", "2.15.0a0+gitaaaaaaa", "2.15.0rc1"])
def test_of_nightlies_and_source_builds_only_the_same_commit_fits(version: str) -> None:
    compiled = TorchBuild(version, COMMIT)
    assert mismatch(compiled, TorchBuild(version, COMMIT)) is None
    assert mismatch(compiled, TorchBuild("2.15.0", COMMIT)) is None
    said = mismatch(compiled, TorchBuild(version, OTHER_COMMIT))
    assert said is not None
    assert f"{version} (commit aaaaaaaaaaaa)" in said
    assert f"{version} (commit bbbbbbbbbbbb)" in said
    assert "pip install 'torch==" not in said  # a nightly may be gone


def test_import_with_another_torch_fails_and_names_both_and_the_command(python: Python) -> None:
    code = """
import sys, torch
compiled, torch.__version__ = torch.__version__, "2.99.1+cu130"
try:
    import torch_puone
except ImportError as error:
    said = str(error)
assert f"was compiled for torch {compiled}, but torch 2.99.1+cu130 is installed" in said, said
assert "pip install --no-build-isolation --no-deps --no-cache-dir --force-reinstall" in said, said
assert f"pip install 'torch=={'.'.join(compiled.split('.')[:2])}.*'" in said, said
assert "torch_puone._C" not in sys.modules and not hasattr(torch, "puone")
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_the_version_is_that_of_the_distribution(python: Python) -> None:
    done = python("import torch_puone; print(torch_puone.__version__)")
    assert done.stdout.strip() == metadata.version("torch-puone")
