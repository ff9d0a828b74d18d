# SPDX-License-Identifier: BSD-3-Clause
"""The C++ program of docs/cpp.md: built as the page says, and run without Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Most of a minute of a compiler that reads torch's headers.
pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cpp.md"


def console_blocks() -> list[str]:
    """The terminal sessions that the page shows."""
    return re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """(the commands of the page, what the last one prints)."""
    (block,) = console_blocks()
    shown = [line for line in block.splitlines() if not line.startswith(("$", ">"))]
    commands = "\n".join(line[2:] for line in block.splitlines() if line.startswith(("$ ", "> ")))
    folder = tmp_path_factory.mktemp("cpp")
    commands = commands.replace("build/example", str(folder))
    return commands, "\n".join(shown) + "\n"


@pytest.fixture(scope="module")
def done(session: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    """The commands, run in the checkout."""
    python = Path(sys.executable).parent
    return subprocess.run(
        ["bash", "-euc", session[0]],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
            "PUONE_DRIVER": "sim",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.nightly
def test_the_program_is_built_and_prints_what_the_page_shows(
    session: tuple[str, str], done: subprocess.CompletedProcess[str]
) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(session[1])


def test_it_ends_in_order_every_time(
    session: tuple[str, str], done: subprocess.CompletedProcess[str]
) -> None:
    # Threads of autograd's and of the driver's are running when main() returns.
    assert done.returncode == 0, done.stderr
    program = session[0].splitlines()[-1]
    for _ in range(10):
        again = subprocess.run(
            [program], env={**os.environ, "PUONE_DRIVER": "sim"}, capture_output=True, check=False
        )
        assert (again.returncode, again.stderr) == (0, b"")
