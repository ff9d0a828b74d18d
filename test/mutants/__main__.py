# SPDX-License-Identifier: BSD-3-Clause
"""Changes the backend at random places, one change at a time, and runs the suite on each.

    mutants                       200 mutants of a new seed
    mutants --sample 1000 --seed 7
    mutants --group device        200 of one group alone
    mutants --seed 7              again: goes on where the last run of this seed ended
    mutants --seed 7 --mutant 12  one of them, with what the suite says
    mutants --list --seed 7       the mutants, without a build

Half of a sample is of the group `operators`, half of the group `device` (scope.yaml), unless
--group names one. The mutants are compiled into one library; the suite runs once to find out which
checks reach which mutant, and then for each mutant the checks that reach it, until one fails. What
survives of the simulated driver and its kernels meets the suite of drivers (hal_conformance). For
what survives of the operators, results of random calls with and without it are compared. The result
is in build/mutants/SEED/score.md, or SEED-GROUP. The status is 0 when the score is known, whatever
it is, and 2 when it is not.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pickle
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TEST = ROOT / "test"
sys.path[:0] = [str(HERE / "path"), str(TEST)]
sys.path += [str(TEST / name) for name in ("inductor", "liars", "liars/backend", "liars/source")]

# After sys.path is set, hence each E402.
import msgspec  # noqa: E402
from mutants import sample, score  # noqa: E402
from mutants.equivalent import compare, judged_again  # noqa: E402
from mutants.rules import Mutant  # noqa: E402
from mutants.tree import Tree, environment  # noqa: E402
from mutants.verdicts import Record, Verdict  # noqa: E402

if TYPE_CHECKING:
    from mutants.reach import Coverage
    from mutants.suite_runner import SuiteRunner

BUILD = ROOT / "build" / "mutants"
#: More than wanted are compiled at first: some mutants are not C++.
SPARE = 1.35
#: What is compiled at run time may meet a sleeping mutant in a template that is not C++ where it is
#: used, and fails. The share of checks that may be left out.
MOST_WRONG = 0.005


def main(arguments: list[str]) -> int:
    """The command line; see above."""
    options = _parser().parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    if options.list:
        for mutant in _drawn(options, seed):
            print(mutant)
        return 0
    folder = BUILD / "-".join([str(seed), *([options.group] if options.group else [])])
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, in {folder.relative_to(ROOT)}", flush=True)
    try:
        return _run(options, seed, folder)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sample", type=_count, default=200, help="how many mutants (200)")
    parser.add_argument("--seed", type=int, help="of the sample; without it, a new one")
    parser.add_argument("--group", choices=sample.SCOPE, help="only mutants of this group")
    parser.add_argument("--mutant", type=int, nargs="+", help="only these, by their numbers")
    parser.add_argument("--list", action="store_true", help="print the mutants, build nothing")
    parser.add_argument(
        "--limit", type=float, default=60, help="seconds of checks that a mutant gets at most (60)"
    )
    parser.add_argument("--summary", type=Path, metavar="FILE", help="add the score to this file")
    parser.add_argument("-n", "--processes", type=int, default=len(os.sched_getaffinity(0)))
    return parser


def _count(text: str) -> int:
    count = int(text)
    if count < len(sample.SCOPE):
        raise argparse.ArgumentTypeError(f"{count} is less than one for each group")
    return count


def _run(options: argparse.Namespace, seed: int, folder: Path) -> int:
    tree = Tree(folder)
    mutants = _compiled(options, seed, tree, folder)
    # It imports torch, which takes seconds: only after the mutants are compiled.
    from mutants.suite_runner import SuiteRunner

    runner = SuiteRunner(tree.package, folder, options.processes)
    covered = _coverage(runner, folder)
    record = Record(folder / "verdicts.jsonl")
    wanted = options.mutant or [n for n in mutants if n not in record.verdicts]
    plans = {
        number: covered.plan(number, options.limit, sample.owners_of(mutants[number].file))
        for number in wanted
    }
    begin = time.monotonic()
    chosen = {number: plan.checks for number, plan in plans.items()}
    verdicts = runner.judge(chosen, covered.fallbacks, _cold(mutants, plans))
    for done, verdict in enumerate(verdicts, 1):
        plan = plans[verdict.number]
        verdict = msgspec.structs.replace(
            verdict, reached=plan.reached, skipped=0 if verdict.killed else plan.skipped
        )
        record.add(verdict)
        left = (time.monotonic() - begin) / done * (len(wanted) - done) / 60
        print(
            f"[{done}/{len(wanted)}, about {left:.0f} min left] {_line(mutants, verdict)}",
            flush=True,
        )
        if options.mutant:
            print(f"    {verdict.outcome} {verdict.message}")
    _ask_driver_suite(options, mutants, record, tree)
    _make_random_calls(options, mutants, record, tree, covered)
    _compare_code(options, mutants, record, tree)
    text = score.markdown(mutants, judged_again(mutants, record.verdicts), seed)
    (folder / "score.md").write_text(text)
    if options.summary:
        with options.summary.open("a") as summary:
            summary.write(text)
    print(f"\n{text.partition('## Survivors')[0]}\nsurvivors: {folder / 'score.md'}")
    return 0


def _cold(mutants: dict[int, Mutant], numbers: Iterable[int]) -> set[int]:
    """Those that must find no compiled module in the cache."""
    return {number for number in numbers if sample.compiles(mutants[number].file)}


def _to_ask(
    options: argparse.Namespace, record: Record, answer: Callable[[Verdict], object]
) -> list[int]:
    """The survivors of which there is no answer yet, and those that are tried once more."""
    again = options.mutant or ()
    return [
        number
        for number, one in record.verdicts.items()
        if one.survived and (answer(one) is None or number in again)
    ]


def _ask_driver_suite(
    options: argparse.Namespace, mutants: dict[int, Mutant], record: Record, tree: Tree
) -> None:
    """Let the suite of drivers judge what survived the suite of backends."""
    from mutants.driver_suite import DriverSuite, is_of_driver

    alive = [
        number
        for number in _to_ask(options, record, lambda one: one.driver_tests)
        if is_of_driver(mutants[number].file)
    ]
    if not alive:
        return
    print(f"the suite of drivers, for {len(alive)} that survived", flush=True)
    suite = DriverSuite(tree, options.processes)
    covered = suite.coverage()
    plans = {number: covered.plan(number, options.limit).checks for number in alive}
    for verdict in suite.judge(plans, _cold(mutants, plans)):
        before = record.verdicts[verdict.number]
        merged = msgspec.structs.replace(verdict, ran=before.ran, reached=before.reached)
        if not merged.killed:
            merged = msgspec.structs.replace(merged, skipped=before.skipped)
        record.add(merged)
        print(f"  {_line(mutants, merged)}", flush=True)


def _make_random_calls(
    options: argparse.Namespace,
    mutants: dict[int, Mutant],
    record: Record,
    tree: Tree,
    covered: Coverage,
) -> None:
    """Find out which survivors of the operators give other results at all."""
    from mutants.differential import CHECKS, Differential
    from mutants.random_calls import makes_calls

    plans = {}
    for number in _to_ask(options, record, lambda one: one.calls):
        if sample.group_of(mutants[number].file) == sample.CALLED:
            checks = [id for id in covered.checks_for(number) if makes_calls(id)]
            if checks:
                plans[number] = random.Random(number).sample(checks, min(CHECKS, len(checks)))
    if not plans:
        return
    print(f"random calls with {len(plans)} that survived", flush=True)
    calls = Differential(tree.build / "random_calls", environment(tree.package), options.processes)
    for found in calls.compare(plans):
        before = record.verdicts[found.number]
        record.add(msgspec.structs.replace(before, calls=found.calls, differs=found.differs))
        said = f"differs in {found.differs}" if found.differs else "gives the same results"
        print(f"  {found.number} {said}", flush=True)


def _compare_code(
    options: argparse.Namespace, mutants: dict[int, Mutant], record: Record, tree: Tree
) -> None:
    """Find out of which survivors the compiler makes the same code as without them."""
    numbers = [
        number
        for number in _to_ask(options, record, lambda one: one.equivalent)
        if not record.verdicts[number].differs
    ]
    if not numbers:
        return
    print(f"the code of {len(numbers)} that survived", flush=True)
    found = compare([mutants[number] for number in numbers], tree, options.processes)
    for number, reason in zip(numbers, found, strict=True):
        verdict = msgspec.structs.replace(record.verdicts[number], equivalent=reason)
        record.add(verdict)
        print(f"  {_line(mutants, verdict)}", flush=True)


def _line(mutants: dict[int, Mutant], verdict: Verdict) -> str:
    word = "killed" if verdict.killed else "equal" if verdict.equivalent else "ALIVE"
    if verdict.broken:
        word = f"no trial: {verdict.broken}"
    return f"{word:<6} {verdict.number} {mutants[verdict.number]}  {verdict.by} {verdict.seconds} s"


def _shares(options: argparse.Namespace) -> dict[str, int]:
    """How many mutants of which groups are wanted."""
    groups = [options.group] if options.group else list(sample.SCOPE)
    return dict.fromkeys(groups, options.sample // len(groups))


def _drawn(options: argparse.Namespace, seed: int) -> Iterator[Mutant]:
    for group, count in _shares(options).items():
        yield from itertools.islice(sample.endless(group, seed), count)


def _compiled(
    options: argparse.Namespace, seed: int, tree: Tree, folder: Path
) -> dict[int, Mutant]:
    """The first so many of each group that compile, by number; kept, for a run that goes on."""
    kept = folder / "sample.json"
    if kept.is_file():
        return msgspec.json.decode(kept.read_bytes(), type=dict[int, Mutant])
    shares = _shares(options)
    numbered: dict[int, Mutant] = {}
    for group, count in shares.items():
        for mutant in itertools.islice(sample.endless(group, seed), int(count * SPARE)):
            numbered[len(numbered)] = mutant
    while True:
        tree.weave(numbered)
        print(f"compiling with {len(numbered)} mutants", flush=True)
        bad = tree.compile()
        if not bad:
            break
        print(f"  {len(bad)} are not programs", flush=True)
        numbered = {n: mutant for n, mutant in numbered.items() if n not in bad}
    chosen: dict[int, Mutant] = {}
    for group, count in shares.items():
        own = [n for n, mutant in numbered.items() if sample.group_of(mutant.file) == group]
        chosen |= {n: numbered[n] for n in own[:count]}
    kept.write_bytes(msgspec.json.encode(chosen))
    return chosen


def _coverage(runner: SuiteRunner, folder: Path) -> Coverage:
    kept = folder / "coverage.pickle"
    if kept.is_file():
        found: Coverage = pickle.loads(kept.read_bytes())  # written by this program
        return found
    covered, wrong = runner.coverage()
    if wrong:
        listed = "\n  ".join(f"{check}: {said}" for check, said in sorted(wrong.items())[:20])
        failing = f"{len(wrong)} checks fail without any mutant:\n  {listed}"
        if len(wrong) > MOST_WRONG * len(covered.seconds):
            raise RuntimeError(failing)
        print(f"left out, {failing}", flush=True)
    kept.write_bytes(pickle.dumps(covered))
    return covered


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
