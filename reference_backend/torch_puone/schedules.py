# SPDX-License-Identifier: BSD-3-Clause
"""Run a program under many schedules of the sim driver, and say under which it fails.

    python -m torch_puone.schedules 50 -- train.py --epochs 1

A program that orders its streams as it must does the same under every schedule. One that fails
under some of them has a race, and `PUONE_SIM_SEED=SEED` repeats that schedule. What a seed decides
is said in docs/debugging-late-errors.md.

Exit codes: 0 all runs succeeded, 1 some failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

#: How many lines of a failed run's standard error are shown.
_LINES = 5


@dataclass(frozen=True)
class Outcome:
    """How a run of the program ended; `status` is None if it took too long."""

    seed: int | None  # None: the ordinary schedule
    status: int | None
    output: bytes
    errors: str

    def failure(self, plain: Outcome | None) -> str:
        """Why the run failed, "" if it did not."""
        if self.status is None:
            return "took too long"
        if self.status != 0:
            return f"exit status {self.status}"
        if plain is not None and self.output != plain.output:
            return "printed something else than under the ordinary schedule"
        return ""


def run(program: Sequence[str], seed: int | None, timeout: float) -> Outcome:
    """Run a Python program under one schedule. `timeout` is in seconds."""
    environment = {key: value for key, value in os.environ.items() if key != "PUONE_SIM_SEED"}
    environment |= _variables(seed)
    try:
        done = subprocess.run(
            [sys.executable, *program],
            env=environment,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return Outcome(seed, None, error.stdout or b"", _text(error.stderr))
    return Outcome(seed, done.returncode, done.stdout, _text(done.stderr))


def _variables(seed: int | None) -> dict[str, str]:
    """What decides the schedule of a run."""
    hash_seed = os.environ.get("PYTHONHASHSEED", "0")  # the order of sets may be that of launches
    variables = {"PUONE_DRIVER": "sim", "PYTHONHASHSEED": hash_seed}
    return variables if seed is None else variables | {"PUONE_SIM_SEED": str(seed)}


def _text(stream: bytes | None) -> str:
    return (stream or b"").decode(errors="replace")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    options = _parsed(sys.argv[1:] if arguments is None else arguments)
    plain = run(options.program, None, options.timeout) if options.same_output else None
    if plain is not None and (why := plain.failure(None)):
        print(f"the program fails under the ordinary schedule, too: {why}\n{plain.errors}")
        return 1
    failed = []
    for seed in range(options.first, options.first + options.schedules):
        outcome = run(options.program, seed, options.timeout)
        if why := outcome.failure(plain):
            failed.append(seed)
            print(f"seed {seed}: {why}", *outcome.errors.splitlines()[-_LINES:], sep="\n  ")
    if not failed:
        print(f"all of {options.schedules} schedules succeeded")
        return 0
    print(f"{len(failed)} of {options.schedules} schedules failed: {_listed(failed)}")
    variables = (f"{name}={shlex.quote(value)}" for name, value in _variables(failed[0]).items())
    command = shlex.join(["python", *options.program])
    print("to repeat the first:", *variables, command)
    return 1


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options. argparse would drop a -- among the program's own arguments."""
    parser = _parser()
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    # Behind a program, the -- belongs to it.
    options.program += arguments[at if options.program else at + 1 :]
    if not options.program:
        parser.error("the following arguments are required: program")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m torch_puone.schedules",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("schedules", type=_positive, help="how many schedules, one for each seed")
    parser.add_argument("program", nargs="*", help="a Python script, or -m module, with arguments")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument(
        "--timeout", type=float, default=300, help="seconds for one run (default: 300)"
    )
    parser.add_argument(
        "--same-output",
        action="store_true",
        help="what the program prints must be the same as under the ordinary schedule",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
