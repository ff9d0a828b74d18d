# SPDX-License-Identifier: BSD-3-Clause
"""The command `python -m torch_puone.migrate`: see `--help`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from .places import Place

DESCRIPTION = """\
From torch.cuda to any accelerator.

  %(prog)s [--device TYPE] script.py ARGUMENTS...
  %(prog)s [--device TYPE] -m module ARGUMENTS...
      Run a CUDA program, unchanged, on another device: "cuda" means that device, torch.cuda is what
      the device has of it. Each line that uses CUDA by name gives one warning (CudaUse, a
      DeprecationWarning) that says what to write for it; Python's option -W and PYTHONWARNINGS
      decide what happens to warnings. What has no equivalent raises an error that names it.
      Threads and processes that the program starts are included.
      With torchrun: torchrun ... -m %(package)s script.py ARGUMENTS...

  %(prog)s --report [--format text|json] PATH...
      List the uses of CUDA in files, and in the *.py files of directories: file, line, column, what
      is used, what to write. Places marked [*] can be changed by --fix. Nothing is run, no device
      is needed.

  %(prog)s --fix [--write] PATH...
      Show, as a diff, the changes at places where the program does the same on CUDA before and
      after; with --write, make them. Formatting and comments stay. The rest needs a person.

--report and --fix need libcst (pip install libcst).

Exit codes: of a program that is run, its own. --report: 0 nothing found, 1 uses found. --fix: 0
nothing to change, 1 changes shown; with --write 0. All: 2 wrong usage, a file that cannot be read
or is not Python (the other files are treated nevertheless).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code; a program that is run may end the process itself."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    own, program = _divided(given)
    options = parser.parse_args(own)
    if program:
        options.paths = []
    if (options.format != "text" and not options.report) or (options.write and not options.fix):
        parser.error("--format belongs to --report, --write to --fix")
    if options.report or options.fix:
        if not options.paths:
            parser.error("give files or directories")
        if options.device:
            parser.error("--device belongs to a program that is run")
        return _on_files(options, parser)
    if not program:
        parser.error("give a program, or --report or --fix")
    return _run(options.device, program, parser)


def _run(device: str | None, program: list[str], parser: argparse.ArgumentParser) -> int:
    from .run import run_module, run_script
    from .scope import enter_for_process

    is_module = program[0] == "-m"
    try:
        if is_module:
            del program[0]
        else:
            open(program[0]).close()  # runpy would say less
        name = program[0]
        if is_module and not _is_module(name):
            parser.error(f"argument -m: there is no module {name}")
    except OSError as error:
        parser.error(f"{program[0]}: {error.strerror}")
    except IndexError:
        parser.error("argument -m: expected the name of a module")
    try:
        enter_for_process(device)
    except RuntimeError as error:
        parser.error(str(error))
    run = run_module if is_module else run_script
    run(name, program[1:])
    return 0


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # of a parent; of an empty or relative name
        return False


def _on_files(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    try:
        from .uses import uses
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        parser.error("--report and --fix need libcst: pip install libcst")
    from .sources import python_files

    found: list[tuple[Path, bytes, str, list[Place]]] = []
    failed = False
    try:
        for path in python_files(options.paths):
            if path.suffix not in ("", ".py", ".pyw", ".pyi"):
                print(f"{path}: not a Python file, by its suffix", file=sys.stderr)
                failed = True
                continue
            try:
                source = path.read_bytes()
                found.append((path, source, *uses(source)))
            except (OSError, SyntaxError) as error:
                print(_complaint(path, error), file=sys.stderr)
                failed = True
    except FileNotFoundError as error:
        parser.error(str(error))
    if options.report:
        changed = _report(options.format, [(path, places) for path, _, _, places in found])
    else:
        changed = False
        for path, source, text, places in found:
            try:
                changed |= _fix(path, source, text, places, options.write)
            except (OSError, SyntaxError) as error:
                print(_complaint(path, error), file=sys.stderr)
                failed = True
    return 2 if failed else int(changed and not options.write)


def _complaint(path: Path, error: OSError | SyntaxError) -> str:
    if isinstance(error, SyntaxError):
        return f"{path}:{error.lineno or 1}:{error.offset or 1}: not Python: {error.msg}"
    return f"{path}: {error.strerror}"


def _report(format: str, files: Sequence[tuple[Path, list[Place]]]) -> bool:
    places = [(path, place) for path, in_file in files for place in in_file]
    if format == "json":
        print(json.dumps([_record(path, place) for path, place in places], indent=2))
        return bool(places)
    for path, place in places:
        mark = " [*]" if place.fixable else ""
        print(f"{path}:{place.start.line}:{place.start.column}: {place.what}: {place.advice}{mark}")
    fixable = sum(place.fixable for _, place in places)
    print(
        f"{_counted(len(places), 'use')} of CUDA in {_counted(len(files), 'file')};"
        f" --fix changes {fixable} of them [*]"
    )
    return bool(places)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _record(path: Path, place: Place) -> dict[str, str | int | bool]:
    return {
        "path": str(path),
        "line": place.start.line,
        "column": place.start.column,
        "what": place.what,
        "advice": place.advice,
        "fixable": place.fixable,
    }


def _fix(path: Path, source: bytes, text: str, places: Sequence[Place], to_file: bool) -> bool:
    from . import fix

    after = fix.fixed(text, places)
    if after == text:
        return False
    if to_file:
        fix.write(path, fix.encoded(source, after))
        print(f"{path}: {_counted(sum(place.fixable for place in places), 'place')} changed")
    else:
        print(fix.diff(str(path), text, after), end="")
    return True


def _divided(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(our options, the program and its arguments): what follows a program belongs to it."""
    values = {"--device", "--format"}
    if "--report" in arguments or "--fix" in arguments:
        before = arguments[: _program_at(arguments, values)]
        if "--report" in before or "--fix" in before:
            return list(arguments), []
    at = _program_at(arguments, values)
    return list(arguments[:at]), list(arguments[at:])


def _program_at(arguments: Sequence[str], values: set[str]) -> int:
    at = 0
    while at < len(arguments):
        if arguments[at] == "-m" or not arguments[at].startswith("-"):
            return at
        at += 2 if arguments[at] in values else 1
    return at


def _parser() -> argparse.ArgumentParser:
    package = __package__ or "migrate"
    prog = f"python -m {package}"
    parser = argparse.ArgumentParser(
        prog=prog,
        usage="%(prog)s [options] script.py ... | -m module ... | --report PATH ...|--fix PATH ...",
        description=DESCRIPTION % {"prog": prog, "package": package},
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--device", metavar="TYPE", help="the device type (default: the current accelerator)"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--report", action="store_true", help="list the uses of CUDA")
    mode.add_argument(
        "--fix", action="store_true", help="show what can be changed without a person"
    )
    parser.add_argument("--write", action="store_true", help="with --fix: change the files")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="of --report (default: text)"
    )
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
