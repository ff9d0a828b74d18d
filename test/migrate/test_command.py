# SPDX-License-Identifier: BSD-3-Clause
"""`python -m torch_puone.migrate` runs a program as `python` does, on another device."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

import torch_puone
from torch_puone.migrate import CudaUse, NoEquivalent, cuda_as
from torch_puone.migrate.__main__ import _divided, main
from torch_puone.migrate.run import run_module, run_script

ROOT = Path(__file__).resolve().parents[2]


def migrate(*arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT / "reference_backend"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "torch_puone.migrate", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "PUONE_DRIVER": "sim",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def write(path: Path, code: str) -> str:
    path.write_text(dedent(code))
    return str(path)


PROGRAM = """\
    import atexit
    import sys
    import helper
    import torch
    import torch.cuda as tc

    def work(index):
        device = torch.device("cuda", index)
        print(f"process {index} on {helper.ones().to(device).device}", flush=True)

    if __name__ == "__main__":
        print(sys.argv, __file__, __name__)
        print(helper.here)
        atexit.register(lambda: print("the end on", torch.ones(1, device="cuda").device))
        torch.multiprocessing.spawn(work, nprocs=1)
        sys.exit(7)
    """
HELPER = """\
    import torch
    from torch.cuda import is_available
    here = torch.cuda.get_device_name()
    def ones():
        assert is_available()
        return torch.ones(1).cuda()
    """


def test_a_program_runs_with_its_arguments_helpers_processes_and_exit_code(tmp_path: Path) -> None:
    script = write(tmp_path / "program.py", PROGRAM)
    write(tmp_path / "helper.py", HELPER)
    done = migrate("--device", "puone", script, "--report", "a b", "--", "-m")
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == [
        f"{[script, '--report', 'a b', '--', '-m']} {script} __main__",
        torch_puone.get_device_name(),
        "process 0 on puone:0",
        "the end on puone:0",
    ]
    warnings = [line for line in done.stderr.splitlines() if "CudaUse" in line]
    # The helper is imported in both processes; Python hides such warnings of imported modules.
    name = f"{tmp_path / 'helper.py'}:3: CudaUse: torch.cuda.get_device_name: "
    assert [line.startswith(name) for line in warnings].count(True) == 2, warnings
    assert any(line.startswith(f"{script}:8: CudaUse: the device") for line in warnings)


@contextmanager
def here() -> Iterator[None]:
    """A block in this process, whose arguments and path stay."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), cuda_as("puone"):
        warnings.simplefilter("ignore", CudaUse)
        patch.setattr(sys, "argv", list(sys.argv))
        patch.setattr(sys, "path", list(sys.path))
        yield


def test_an_error_of_the_program_is_its_own(tmp_path: Path) -> None:
    script = write(tmp_path / "program.py", "import torch\ntorch.cuda.utilization()\n")
    with pytest.raises(NoEquivalent, match="utilization has no equivalent") as caught, here():
        run_script(script, [])
    assert 2 in [entry.lineno + 1 for entry in caught.traceback if str(entry.path) == script]


def test_a_module_runs_as_with_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "import sys, torch\nprint(sys.argv[1:], __name__, torch.ones(1).cuda().device)\n"
    write(tmp_path / "migrated_program.py", code)
    monkeypatch.chdir(tmp_path)
    with here():
        run_module("migrated_program", ["--epochs", "1"])
    assert capsys.readouterr().out == "['--epochs', '1'] __main__ puone:0\n"


def test_a_program_with_a_syntax_error_says_so(tmp_path: Path) -> None:
    script = write(tmp_path / "program.py", "x = (\n")
    with pytest.raises(SyntaxError, match="was never closed"), here():
        run_script(script, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no/such/program.py"], "no/such/program.py: No such file or directory"),
        (["-m"], "argument -m: expected the name of a module"),
        (["--device", "nochip", __file__], "there is no device type 'nochip' here"),
        (["--device", "xpu", __file__], "there is no device of the type 'xpu' on this machine"),
        (["--device", "puone:7", __file__], "'puone:7' has an index: give the type"),
        (["-m", "no_such_module"], "there is no module no_such_module"),
        (["-m", "no_such_package.module"], "there is no module no_such_package.module"),
    ],
)
def test_a_program_that_cannot_run_is_wrong_usage(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a program, or --report or --fix"),
        (["--report"], "give files or directories"),
        (["--report", "--fix", "a.py"], "not allowed with argument"),
        (["--write", "--report", "a.py"], "--write to --fix"),
        (["--format", "json", "--fix", "a.py"], "--format belongs to --report"),
        (["--device", "puone", "--report", "a.py"], "--device belongs to a program that is run"),
        (["--nonsense", "a.py"], "unrecognized arguments: --nonsense"),
    ],
)
def test_wrong_usage_is_explained(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "own", "program"),
    [
        (["a.py", "--report"], [], ["a.py", "--report"]),
        (["--device", "x", "a.py", "--device"], ["--device", "x"], ["a.py", "--device"]),
        (["--device=x", "-m", "a", "-b"], ["--device=x"], ["-m", "a", "-b"]),
        (["--report", "a.py", "b.py"], ["--report", "a.py", "b.py"], []),
        (["--fix", "a.py", "--write"], ["--fix", "a.py", "--write"], []),
        (["--format", "json", "--report", "a.py"], ["--format", "json", "--report", "a.py"], []),
    ],
)
def test_what_follows_a_program_belongs_to_it(
    arguments: list[str], own: list[str], program: list[str]
) -> None:
    assert _divided(arguments) == (own, program)


def test_the_help_says_everything_that_the_document_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for word in ("--device", "--report", "--format", "--fix", "--write", "torchrun", "Exit codes"):
        assert word in text
