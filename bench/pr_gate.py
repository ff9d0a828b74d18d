# SPDX-License-Identifier: BSD-3-Clause
"""How long a PR waits for its verdict: `python -m bench.pr_gate --environment .venv`.

What a machine of .github/workflows/pr.yml does for a lane, one step after the other, from cloning
to the verdict, by the wall clock: all checks of the PR tier on this one machine. The caches are
warm, as on GitHub after the first PR: the environment is copied from where it was kept, and what
did not change was compiled before (ccache; --warm compiles everything once, untimed).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
BUDGET = 4 * 60  # seconds, with warm caches
LANE = "backend"  # ci/gate/vendor.yaml asks for this one lane and no other
LOG_TAIL = 20  # lines shown of a step that failed


class Step(NamedTuple):
    """A step of the workflow, and the command for it."""

    title: str
    command: str


STEPS = (
    Step(
        "environment, out of a cache",
        'cp --archive "$ENVIRONMENT" .venv && make suite-environment tools',
    ),
    Step("build", "make build"),
    Step("the PR's patch", "git diff --output=change.patch HEAD^1 HEAD"),
    Step(
        "surface check",
        "torch-backend-ci surface check --base .venv --patch change.patch"
        " --format json --fail-on never -o findings.json",
    ),
    Step("suite, PR tier", "make shard"),
    Step("the gate's machine, set up", "git clone --quiet . gate && make --directory=gate tools"),
    Step(
        "gate",
        "mkdir -p baseline && torch-backend-ci gate --candidate reports --baseline baseline"
        " --policy ci/gate/vendor.yaml --findings findings.json"
        ' --head-sha "$(git rev-parse HEAD)" --summary summary.md -o verdict.json',
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pr_gate", description=__doc__)
    parser.add_argument(
        "--environment",
        type=Path,
        default=ROOT / ".venv",
        metavar="DIR",
        help="the virtual environment that the cache would hold (default: %(default)s)",
    )
    parser.add_argument("--rev", default="HEAD", help="the commit to judge (default: %(default)s)")
    parser.add_argument(
        "--warm", action="store_true", help="first, untimed: fill the compiler's cache"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ENVIRONMENT": str(args.environment.resolve())}
        clone = Path(folder, "clone")  # in one place, as on GitHub: paths are in what is cached
        if args.warm:
            list(timed(clone, args.rev, environment, STEPS[:2]))
        total = 0.0
        for title, seconds in timed(clone, args.rev, environment, STEPS):
            print(f"{title:30}{seconds:7.1f} s", flush=True)
            total += seconds
    said = "within" if total <= BUDGET else "over"
    print(f"{'clone to verdict':30}{total:7.1f} s, {said} {BUDGET} s, {os.cpu_count()} cores")
    raise SystemExit(total > BUDGET)


def timed(
    clone: Path, rev: str, outer: Mapping[str, str], steps: tuple[Step, ...]
) -> Iterator[tuple[str, float]]:
    """Clone `rev`, then take the steps in the clone; the seconds of each."""
    environment = {
        **outer,
        "PATH": f"{clone}/.venv/bin:{outer['PATH']}",
        "PUONE_DRIVER": "sim",
        "PYTEST_ARGS": f"--report=reports/{LANE}/1.json",
    }
    for name in ("PYTHON", "PYTHONPATH"):
        environment.pop(name, None)
    cloning = f'git clone --quiet "{ROOT}" "{clone}" && cd "{clone}" && git checkout --quiet {rev}'
    yield "clone", run(cloning, clone.parent, environment)
    for step in steps:
        yield step.title, run(step.command, clone, environment)
    shutil.rmtree(clone)


def run(command: str, folder: Path, environment: Mapping[str, str]) -> float:
    """The seconds that a command took; the bench ends with one that fails."""
    begun = time.monotonic()
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begun
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-LOG_TAIL:])
        raise SystemExit(f"{command}\nended with status {done.returncode}:\n{tail}")
    return seconds


if __name__ == "__main__":
    main()
