# SPDX-License-Identifier: BSD-3-Clause
"""A backend from nothing, live and without a device: `make demo`.

    python examples/demo/demo.py [--directory build/demo] [--record]

Writes a repository, builds it, runs the suite's smoke tier, adds three kernels while the list of
what to implement shrinks, compiles a model, and draws a timeline. Every command is printed, then
what it says, shortened, then how long it took. --record keeps the transcript (transcript.txt) and
draws the picture of it (docs/demo.svg).

Exit codes: 0; 1 if a command fails, with all that it said.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRANSCRIPT = HERE / "transcript.txt"
NAME = "mychip"
#: One backend to a process: this project's own must not be beside the new one. The suite is
#: installed anew.
OURS = re.compile(r".*puone.*|.*conformance.*|__editable__.*|__pycache__")
SMOKE = f"build/conformance/{NAME}.smoke.json"
TRAINING = f"build/conformance/{NAME}.partial.json"

Shown = Callable[[Sequence[str]], Iterable[str]]


@dataclass(frozen=True)
class Kernel:
    """What a vendor writes for an elementwise kernel: a function, and a row of the table."""

    name: str
    function: str
    row: str


KERNELS = (
    Kernel(
        "mul",
        "constexpr auto kMul = [](auto a, auto b) { return types::times(a, b); };",
        'elementwiseKernel<kMul, kNumbers, 2>("mul"),',
    ),
    Kernel(
        "sub",
        "constexpr auto kSub = [](auto a, auto b, auto alpha) {\n"
        "  return types::minus(a, types::times(alpha, b));\n};",
        'elementwiseKernel<kSub, kNumbers, 2, 1>("sub"),',
    ),
    Kernel(
        "neg",
        "constexpr auto kNeg = [](auto x) { return types::negated(x); };",
        'elementwiseKernel<kNeg, kNumbers, 1>("neg"),',
    ),
)


class Failed(RuntimeError):
    """A command failed; the text is what it said."""


class Terminal:
    """Prints a transcript and keeps it. On a terminal, a command's last line shows its progress."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str = "") -> None:
        """One line of the transcript."""
        self._clear()
        self.lines.append(line)
        print(line, flush=True)

    def progress(self, line: str) -> None:
        """A line that the next one replaces."""
        if sys.stdout.isatty():
            self._clear()
            print(line[: shutil.get_terminal_size().columns - 1], end="\r", flush=True)

    def _clear(self) -> None:
        if sys.stdout.isatty():
            print("\033[2K", end="\r")


class Shell:
    """A vendor's shell, in an environment of its own."""

    def __init__(self, directory: Path, terminal: Terminal) -> None:
        self.where = directory
        self.terminal = terminal
        scripts = environment(directory / "venv") / "bin"
        hidden = ("PYTHONPATH", "VIRTUAL_ENV")
        self.variables = {key: text for key, text in os.environ.items() if key not in hidden}
        path = f"{scripts}:{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
        self.variables |= {"PATH": path, "CCACHE_BASEDIR": str(directory)}

    def run(self, command: str, shown: Shown) -> list[str]:
        """Run a command, print what `shown` keeps of its lines, and return all of them."""
        self.terminal.say(f"$ {command}")
        begin = time.monotonic()
        with subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.where,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line.rstrip())
                self.terminal.progress(f"{time.monotonic() - begin:4.0f} s  {lines[-1]}")
        if process.returncode != 0:
            raise Failed("\n".join(lines))
        for line in shown(lines):
            self.terminal.say(line)
        self.terminal.say(f"# {time.monotonic() - begin:.0f} s")
        return lines


def environment(directory: Path) -> Path:
    """A virtual environment with the packages of this one except those of this project.

    They are linked, so that nothing is downloaded or copied.
    """
    venv.create(directory, with_pip=False)
    base = {"base": str(directory), "platbase": str(directory)}
    packages = Path(sysconfig.get_path("purelib", vars=base))
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not OURS.fullmatch(path.name):
            (packages / path.name).symlink_to(path)
    return directory


def ended(lines: Sequence[str]) -> Iterable[str]:
    """The last line of a run of pytest."""
    return [line.strip("= ") for line in lines if re.match(r"=+ .* in [\d.]+s", line)]


def matching(pattern: str) -> Shown:
    """The lines in which the pattern is."""
    return lambda lines: [line for line in lines if re.search(pattern, line)]


def built(lines: Sequence[str]) -> Iterable[str]:
    """What `make build` made."""
    steps = [line for line in lines if re.match(r"\[\d+/\d+\]", line)]
    libraries = re.findall(r"Linking CXX shared \w+ .*?([^/\s]+\.so)", "\n".join(steps))
    return [f"{len(steps)} steps: {' '.join(libraries)}"]


def missing(lines: Sequence[str]) -> Iterable[str]:
    """The head of the list of operators, and how many there are."""
    operators = [line for line in lines if line.startswith("aten::")]
    head = [line.partition(", or")[0] for line in operators[:4]]
    return [*head, "...", f"{len(operators)} operators have no kernel yet"]


def add(kernel: Kernel, repository: Path, terminal: Terminal) -> None:
    """Write a kernel into the driver."""
    file = repository / "csrc/drivers/host/kernels.cpp"
    text = file.read_text()
    head, row_end = "constexpr Kernel kKernels[] = {\n", "\n};\n\n} // namespace\n"
    for mark in (head, row_end):
        assert text.count(mark) == 1, f"{file} has not once {mark!r}"
    text = text.replace(row_end, f"\n    {kernel.row}{row_end}")
    file.write_text(text.replace(head, f"{kernel.function}\n\n{head}"))
    terminal.say(f"-- csrc/drivers/host/kernels.cpp: the kernel {kernel.name}")
    for line in (*kernel.function.splitlines(), f"    {kernel.row}"):
        terminal.say(f"+ {line}")


def look(shell: Shell) -> None:
    """Run some checks, and list the operators in them that have no kernel."""
    checks = "--check='autograd/second*' --check='optimizer/loop*'"
    suite = f"pytest --pyargs torch_conformance --backend-file=ci/{NAME}.yaml"
    shell.run(f"python -m {suite} {checks}", ended)
    shell.run(f"python -m torch_{NAME}.new_op --missing {TRAINING}", missing)


def demonstrate(directory: Path) -> list[str]:
    """Run the demonstration in a new directory; its transcript."""
    begin = time.monotonic()
    terminal = Terminal()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    shell = Shell(directory, terminal)
    (directory / "torch-puone").symlink_to(ROOT)
    quiet = "--quiet --no-deps --no-build-isolation"
    shell.run(f"python -m pip install {quiet} ./torch-puone/conformance", matching("$^"))
    tool = "python torch-puone/reference_backend/torch_puone/new"
    shell.run(f"{tool} {NAME} --out torch-{NAME}", matching("^wrote"))
    shell.where /= f"torch-{NAME}"

    shell.run("make build", built)
    shell.run("make smoke", ended)
    look(shell)
    for kernel in KERNELS:
        add(kernel, shell.where, terminal)
        shell.run("cmake --build build", built)
        look(shell)
    examples = "../torch-puone/examples/demo"
    shell.run(f"python {examples}/compiled.py", matching("one graph"))
    shell.run(f"python {examples}/overlap.py", matching(r"^stream|^C copy"))
    shell.run(f"python -m torch_conformance report {SMOKE}", matching("the run is"))
    terminal.say(f"-- from nothing in {time.monotonic() - begin:.0f} s; the report:")
    terminal.say(f"   {(shell.where / SMOKE).with_suffix('.html').relative_to(directory)}")
    return terminal.lines


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=ROOT / "build/demo", metavar="DIR")
    parser.add_argument("--record", action="store_true", help="keep transcript and picture")
    options = parser.parse_args()
    try:
        lines = demonstrate(options.directory.resolve())
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    if options.record:
        from picture import PICTURE, drawn

        TRANSCRIPT.write_text("\n".join([*lines, ""]))
        PICTURE.write_text(drawn(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
