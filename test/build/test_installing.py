# SPDX-License-Identifier: BSD-3-Clause
"""What a person sees of an installation, and of a machine that lacks something."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "requirements"

# pip, as far as its output goes: steps, then what the arguments ask for.
PIP = """
import sys
print("Collecting torch==2.13.0")
print("  Downloading torch-2.13.0-cp311.whl (190.2 MB)")
print("Installing collected packages: mpmath, sympy, torch")
if "offline" in sys.argv:
    sys.exit("WARNING: Retrying after connection broken by 'NewConnectionError'\\nERROR: none")
if "broken" in sys.argv:
    sys.exit("ERROR: Cannot install a and b")
print(*sys.argv[1:])
"""


@pytest.fixture
def pip(tmp_path: Path) -> dict[str, str]:
    """The environment in which `python -m pip` is the above."""
    (tmp_path / "pip.py").write_text(PIP)
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def install(pip: dict[str, str], log: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program as that of an environment with its log in this directory."""
    folder = str(log.parent)
    code = f"import sys, install; sys.prefix = {folder!r}; install.main()"
    environment = pip | {"PYTHONPATH": f"{pip['PYTHONPATH']}:{FOLDER}"}
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True
    )


def test_pip_gets_the_arguments_and_its_output_is_kept(pip: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    done = install(pip, log, "--requirement", "x.txt")
    assert done.returncode == 0, done.stderr
    last = log.read_text().splitlines()[-1]
    assert last.startswith("install --no-compile") and last.endswith("--requirement x.txt")


def test_a_step_is_named_in_short() -> None:
    names = [
        ("Collecting torch==2.13.0", "Collecting torch==2.13.0"),
        ("  Downloading torch-2.13.0.whl (190.2 MB)", "Downloading torch-2.13.0.whl (190.2 MB)"),
        ("Processing /a/b/numpy-2.4.6.whl (from -r x.txt (line 4))", "Processing numpy-2.4.6.whl"),
        ("Installing collected packages: mpmath, sympy, torch", "unpacking 3 packages"),
        ("Looking in indexes: https://pypi.org/simple", None),
    ]
    code = "import sys, install; print([install.step(line) for line in sys.argv[1:]])"
    done = subprocess.run(
        [sys.executable, "-c", code, *(line for line, _ in names)],
        env={**os.environ, "PYTHONPATH": str(FOLDER)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str([said for _, said in names])


def test_without_network_one_line_says_what_to_check(pip: dict[str, str], tmp_path: Path) -> None:
    done = install(pip, tmp_path / "pip.log", "offline")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: pip cannot reach a package index")


def test_another_error_is_that_of_pip(pip: dict[str, str], tmp_path: Path) -> None:
    done = install(pip, tmp_path / "pip.log", "broken")
    assert done.returncode == 1
    assert "Cannot install a and b" in done.stderr
    assert done.stderr.splitlines()[-1].endswith(f"is in {tmp_path / 'pip.log'}")


def test_a_log_that_cannot_be_written_does_not_hide_the_error(
    pip: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "pip.log"
    log.mkdir()
    done = install(pip, log, "broken")
    assert "Cannot install a and b" in done.stderr
    assert done.stderr.splitlines()[-1].endswith(f"{log} cannot be written: Is a directory")


def prerequisites(
    name: str, before: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the check `name`, in a process that `before` has changed."""
    code = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import prerequisites as p\n"
        f"{before}\nsys.argv[1:] = [{name!r}]; p.main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", ["python", "compiler"])
def test_this_machine_has_what_is_needed(name: str) -> None:
    done = prerequisites(name)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "before", "said"),
    [
        ("python", "sys.version_info = (3, 9)", r"is Python 3\.9: install Python 3\.10 or newer"),
        (
            "python",
            "p.importlib.util.find_spec = lambda name: None if name == 'ensurepip' else name",
            r"lacks the module ensurepip: install it \(Debian, Ubuntu: apt-get install python3-v",
        ),
        (
            "compiler",
            "p.shutil.which = lambda name: None",
            r"there is no C\+\+ compiler: install GCC 11 or newer",
        ),
        ("compiler", "p.PROBE = 'int x = nothing;'", r"does not compile C\+\+20 \(.*nothing"),
        (
            "compiler",
            "p.sysconfig.get_paths = lambda: {'include': '/nowhere'}",
            r"no Python\.h in /nowhere: install the headers of this Python",
        ),
    ],
    ids=["old Python", "no venv", "no compiler", "old compiler", "no headers"],
)
def test_what_is_missing_is_one_line_with_what_to_install(
    name: str, before: str, said: str
) -> None:
    done = prerequisites(name, before)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and re.search(said, line), line


def test_the_compiler_that_cxx_names_is_the_one_that_is_asked(tmp_path: Path) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\necho 'error: c++20 is unknown' >&2\nexit 1\n")
    compiler.chmod(0o755)
    done = prerequisites("compiler", CXX=f"{compiler} -O1")
    assert f"{compiler} does not compile C++20 (error: c++20 is unknown)" in done.stderr


def test_a_cxx_that_cannot_be_asked_is_one_line(tmp_path: Path) -> None:
    program = tmp_path / "c++"
    program.write_text("no program")
    program.chmod(0o755)
    speaker = tmp_path / "g++"
    speaker.write_bytes(b"#!/bin/sh\nprintf '\\377 error\\n'\nexit 1\n")
    speaker.chmod(0o755)
    for named, said in [
        ('g++ "', 'CXX=g++ " is not a command (No closing quotation)'),
        (str(program), f"{program} does not run (Exec format error)"),
        (str(speaker), f"{speaker} does not compile C++20 (\N{REPLACEMENT CHARACTER} error)"),
    ]:
        done = prerequisites("compiler", CXX=named, PYTHONIOENCODING="utf-8")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: {said}"), line


def test_a_check_that_there_is_not_is_one_line() -> None:
    done = prerequisites("linker")
    assert done.stderr == "error: there is no check linker; there are python, compiler\n"


def test_an_old_python_reads_the_program() -> None:
    """It has to get as far as to the message: no syntax newer than that of Python 3.6."""
    import ast

    ast.parse((FOLDER / "prerequisites.py").read_text(), feature_version=(3, 6))


def test_a_version_is_pinned_in_one_file_only() -> None:
    pins: dict[str, list[str]] = {}
    for file in sorted(FOLDER.glob("*.txt")):
        for line in file.read_text().splitlines():
            if found := re.match(r"([\w-]+)==", line):
                pins.setdefault(found[1].lower(), []).append(file.name)
    assert pins and all(len(files) == 1 for files in pins.values()), pins


def test_what_the_suite_says_it_needs_is_installed_for_it() -> None:
    """Of its own dependencies, and of the models', each is pinned for the run."""
    declared = (ROOT / "conformance/pyproject.toml").read_text()
    found = re.search(r"^dependencies = \[(.*?)^\]", declared, re.MULTILINE | re.DOTALL)
    assert found
    names = {n.lower() for n in re.findall(r'^  "([\w-]+)', found[1], re.MULTILINE)}
    lists = "".join((FOLDER / f"{n}.txt").read_text() for n in ("torch", "base", "run"))
    assert names and names <= {n.lower() for n in re.findall(r"^([\w-]+)==", lists, re.MULTILINE)}
