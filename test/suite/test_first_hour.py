# SPDX-License-Identifier: BSD-3-Clause
"""A vendor's first hour in the small: three commands from nothing to a ranked list of what to do.

In an environment that has what the suite depends on, and torch, but not the suite; without network.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from test_authoring import write_example

from torch_conformance import PACKAGE
from torch_conformance.spec import catalogue

ROOT = Path(__file__).resolve().parents[2]
FRESHCHIP = ROOT / "test" / "subjects" / "freshchip"
OF_THIS_CHECKOUT = ("__editable", "_editable", "puone_", "torch_conformance", "torch_puone")


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a fresh environment into which suite and backend were installed."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, symlinks=True)
    (library,) = folder.glob("lib/python*/site-packages")
    # What the tests have, but for what was installed from this checkout.
    shared = folder / "shared"
    shared.mkdir()
    for package in Path(torch.__file__).parents[1].iterdir():
        if not package.name.startswith(OF_THIS_CHECKOUT):
            (shared / package.name).symlink_to(package)
    (library / "shared.pth").write_text(f"{shared}\n")
    # Copies: building a package leaves files in its directory.
    sources = folder / "sources"
    for source in (ROOT / "conformance", FRESHCHIP):
        files = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "."],
            cwd=source,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in filter(None, files.split("\0")):
            if (source / name).is_file():
                target = sources / source.name / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes((source / name).read_bytes())
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps"]
    install += ["--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    done = run([*install, sources / "conformance", sources / "freshchip"], folder)
    assert done.returncode == 0, done.stderr
    # The command, which pytest's own installation makes: it does not look into the current
    # directory.
    command = folder / "bin" / "pytest"
    command.write_text(
        f"#!{folder / 'bin' / 'python'}\nimport sys, pytest\nsys.exit(pytest.console_main())\n"
    )
    command.chmod(0o755)
    return folder / "bin"


def run(command: Sequence[object], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a user without this checkout would."""
    hidden = ("PYTHONPATH", "PIP_TARGET", "PYTEST_ADDOPTS")
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key not in hidden},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_from_installation_to_a_ranked_list_in_three_commands(bin_folder: Path) -> None:
    # Where the packages were installed from: a directory `conformance` is there, too.
    folder = bin_folder.parent / "sources"
    python = bin_folder / "python"
    done = run(
        [python, "-m", "torch_conformance", "init", "freshchip", "--import", "torch_freshchip"],
        folder,
    )
    assert done.returncode == 0, done.stderr
    pytest_ = [bin_folder / "pytest", "-p", "no:cacheprovider", "--pyargs", "torch_conformance"]
    done = run(
        [
            *pytest_,
            "--backend-file=freshchip.yaml",
            "--check=smoke/*",
            "--check=copy/equal*",
            "--next",
        ],
        folder,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert str(ROOT) not in done.stdout + done.stderr
    _, _, todo = done.stdout.partition("what to implement next on freshchip")
    assert "operator aten::equal: register a kernel for PrivateUse1\n       COPY-026 " in todo
    assert "capability synchronize: implement it, or declare it false" in todo
    waiting = re.findall(r"^ *(\d+)  (?:operator|guard|capability) ", todo, re.MULTILINE)
    assert waiting == ["6", "1"]
    # Where the user is, and nowhere in the installation.
    assert (folder / "build" / "conformance" / "freshchip.partial.json").is_file()
    assert "pytest --pyargs torch_conformance --backend-file=freshchip.yaml --check" in done.stdout


def test_a_folder_that_is_another_copy_is_refused(bin_folder: Path) -> None:
    command = [bin_folder / "pytest", "conformance", "--backend=cpu"]
    done = run(command, bin_folder.parent / "sources")
    assert done.returncode == 4
    assert "conformance is another copy of the suite than the installed one" in done.stderr


@pytest.mark.nightly
def test_a_vendors_chapter_is_typed_against_the_installed_suite(
    bin_folder: Path, tmp_path: Path
) -> None:
    chapter = write_example(tmp_path / "checks")
    cache = ROOT / "build" / ".mypy_cache_of_programs"
    done = run(
        [
            *(sys.executable, "-m", "mypy", "--strict", f"--cache-dir={cache}"),
            *(f"--python-executable={bin_folder / 'python'}", chapter),
        ],
        tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_messages_of_the_installed_suite_point_to_text_in_it(bin_folder: Path) -> None:
    done = run(
        [bin_folder / "python", "-m", "torch_conformance", "help", "descriptor"], ROOT.parent
    )
    assert done.returncode == 0, done.stderr
    assert "## The descriptor" in done.stdout


def test_the_installed_suite_is_whole(bin_folder: Path, tmp_path: Path) -> None:
    code = (
        "import json\n"
        "from torch_conformance import PACKAGE\n"
        "from torch_conformance.spec import catalogue\n"
        "files = [p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob('*')]\n"
        "print(json.dumps([len(catalogue.load()), sorted(files)]))\n"
    )
    done = run([bin_folder / "python", "-c", code], tmp_path)
    assert done.returncode == 0, done.stderr
    count, files = json.loads(done.stdout)
    assert count == len(catalogue.load())
    needed = {
        path.relative_to(PACKAGE).as_posix()
        for pattern in ("*.py", "*.yaml", "*.json", "*.html", "*.md", "py.typed")
        for path in PACKAGE.rglob(pattern)
    }
    assert needed <= set(files)
