# SPDX-License-Identifier: BSD-3-Clause
"""docs/using.md: its recipes work, and its list of gaps is complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import build_backend
import pytest
import torch.xpu
from interpreter import WITHOUT_EDITABLE, Python

import torch_puone

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "using.md").read_text()


def section(document: str, title: str) -> str:
    """The text under a heading."""
    return document.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks in it."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def mypy(folder: Path, program: str) -> list[str]:
    """What mypy says about it, in strict mode, without any configuration."""
    (folder / "program.py").write_text(program)
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH")
    }
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"]
    done = subprocess.run(
        [*command, "--cache-dir", str(ROOT / "build" / ".mypy_cache_of_programs")],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()[:-1]


@pytest.mark.nightly
def test_type_checkers_know_the_module_under_both_names(tmp_path: Path) -> None:
    recipes = blocks(section(PAGE, "Type checkers and editors"), "python")
    assert len(recipes) == 2
    for recipe, name in zip(recipes, ("torch.puone", "puone"), strict=True):
        assert mypy(tmp_path, recipe) == []
        said = mypy(
            tmp_path,
            f"{recipe}wrong: str = {name}.device_count()\n{name}.empty_cach()\n"
            f"reveal_type({name}.memory.memory_stats)\n",
        )
        assert len(said) == 3
        assert 'expression has type "int", variable has type "str"' in said[0]
        assert 'no attribute "empty_cach"' in said[1]
        assert "OrderedDict[str, Any]" in said[2]


def test_the_rest_of_torch_keeps_its_types(tmp_path: Path) -> None:
    program = "import torch\nimport torch.puone\nwrong: int = torch.ones(2)\n"
    (said,) = mypy(tmp_path, program)
    assert 'expression has type "Tensor"' in said


def test_every_name_that_torch_xpu_has_is_there_or_explained() -> None:
    table = section(PAGE, "What `torch.xpu` has and `torch.puone` does not")
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    explained = set(re.findall(r"`(\w+)`", " ".join(cells)))
    missing = {name for name in torch.xpu.__all__ if not hasattr(torch_puone, name)}
    assert missing <= explained
    assert not {name for name in explained if hasattr(torch_puone, name)}


# ---- installing --------------------------------------------------------------------------------


def commands() -> list[str]:
    """The commands of the section on installing."""
    text = section(
        (ROOT / "docs" / "using.md").read_text(), "Installing puone in your own environment"
    )
    (block,) = blocks(text, "console")
    return block.splitlines()


def test_the_build_tools_that_the_document_names_are_those_that_are_needed() -> None:
    assert f"$ pip install {build_backend.TOOLS}" in commands()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install` puts into site-packages, with the libraries of this checkout's build."""
    folder = tmp_path_factory.mktemp("site-packages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build_backend.build_wheel(str(folder), {"wheel.cmake": "false"})
    with zipfile.ZipFile(folder / name) as wheel:
        wheel.extractall(folder)
    install = ["cmake", "--install", str(ROOT / "build"), "--prefix", str(folder)]
    subprocess.run(install, check=True, capture_output=True)
    return folder


def test_what_the_document_shows_last_works_with_the_installed_package(
    python: Python, installed: Path
) -> None:
    *_, command, printed = commands()
    code = re.fullmatch(r'\$ python -c "(.*)"', command)
    assert code
    program = f"""{WITHOUT_EDITABLE}
{code[1]}
assert torch.puone.__file__.startswith({str(installed)!r}), torch.puone.__file__
"""
    done = python(program, autoload=True, env={"PYTHONPATH": str(installed), "PUONE_DRIVER": "sim"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed + "\n"


def test_pytest_finds_the_plugin_of_the_installed_package(
    python: Python, installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest, torch\n"
        "@pytest.mark.puone(schedules=1, fallback='forbid')\n"
        "def test_it(puone_device):\n"
        f"    assert torch.puone.__file__.startswith({str(installed)!r})\n"
        "    assert torch.ones(2, device=puone_device).sum().item() == 2\n"
    )
    program = f"""{WITHOUT_EDITABLE}
import pytest
sys.exit(pytest.main(["-c", "/dev/null", "-p", "no:cacheprovider", {str(tmp_path)!r}]))
"""
    done = python(program, autoload=True, env={"PYTHONPATH": str(installed)})
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


def test_the_wheel_has_the_stubs_and_the_record_of_its_torch(installed: Path) -> None:
    assert (installed / "torch-stubs" / "py.typed").read_text() == "partial\n"
    assert (installed / "torch-stubs" / "puone.pyi").is_file()
    assert "TORCH_VERSION" in (installed / "torch_puone" / "_build.py").read_text()
    assert not (installed / "build_backend.py").exists()
