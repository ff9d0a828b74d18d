# SPDX-License-Identifier: BSD-3-Clause
"""The options of a run, with the help that explains them."""

from __future__ import annotations

import random

import pytest

from torch_conformance.judging.judge import ALLOW, CHUNK, FALLBACK_POLICIES, Verification
from torch_conformance.judging.reruns import LIMIT
from torch_conformance.judging.rounds import OPTIONS
from torch_conformance.spec.catalogue import PR_TIER, TIERS


def add_options(parser: pytest.Parser) -> None:
    """Add them to pytest's own, as a group."""
    group = parser.getgroup(
        "conformance",
        "conformance of PyTorch device backends\n"
        "  example: pytest --pyargs torch_conformance --backend-file mychip.yaml --tier core\n"
        "  exit codes: 0 green, 1 red, 2 to 5 pytest's own, 64 the run is incomplete,\n"
        "  65 no check was executed, 66 the backend cannot be loaded\n"
        "options",
    )
    add = group.addoption
    add(
        "--backend",
        action="append",
        metavar="NAME",
        help="backend to test: a built-in descriptor (cpu, puone), one that an installed package "
        "announces, or a device type that torch knows (cuda, mps, xpu ...). Repeatable; each "
        "backend has its own report",
    )
    add(
        "--backend-file",
        action="append",
        metavar="FILE",
        help="descriptor of a backend that has no known name. The smallest one: "
        "'device_type: mychip' and 'import: {after_torch: [torch_mychip]}'",
    )
    add(
        "--check",
        action="append",
        metavar="ID",
        help="run only this check, such as stream/order:wait_event; 'stream/*' (only at the end) "
        "selects all ids that begin so. Repeatable",
    )
    add(
        "--tier",
        choices=(*TIERS, PR_TIER),
        help="run this tier and the ones before it: start with smoke, then core. pr: the tiers up "
        "to training with one dtype for each operator, in minutes, for pull requests",
    )
    add("--list", action="store_true", help="print the selected checks with what they verify")
    add(
        "--isolate",
        choices=("chunk", "test", "none"),
        default="chunk",
        help="chunk: worker processes that run --chunk checks each (default). test: one process "
        "for each check. none: in this process, for debuggers; a crash ends the run",
    )
    add("--workers", type=int, metavar="N", help="number of worker processes (default: cores + 1)")
    add(
        "--chunk",
        type=int,
        metavar="N",
        help=f"checks before a worker is replaced (default: {CHUNK})",
    )
    add(
        "--rerun-limit",
        type=int,
        default=LIMIT,
        metavar="N",
        help="number of unexpected results that are run again, alone in a new process, to find "
        f"flaky checks (default: {LIMIT}, not with --isolate=none)",
    )
    add(
        "--verify",
        type=int,
        metavar="N",
        help="run the selected checks N times, in shuffled order and, if the descriptor has "
        "`adversarial_env`, under adversarial schedules; checks with different outcomes are flaky",
    )
    add(
        "--verify-seed",
        type=int,
        metavar="SEED",
        help="seed of the first round of --verify; the next ones follow by one (default: random)",
    )
    add(
        "--since",
        metavar="REV",
        help="run only the checks whose function or file has changed since this revision of git",
    )
    add(
        "--shard",
        metavar="I/N",
        help="run shard I of N of the selected checks; the same checks on every machine",
    )
    add(
        "--shard-by",
        metavar="REPORT",
        help="with --shard: make shards that take equal time, by the durations in this earlier "
        "report (whole or merged, .json or .json.gz; the same file for every shard). If the file "
        "does not exist, a notice is printed and shards get equal numbers of checks",
    )
    add(
        "--report",
        metavar="FILE",
        help="report file; {backend} in it is replaced by the name "
        "(default: build/conformance/{backend}.json for a whole run, {backend}.TIER.json with "
        "--tier, {backend}.partial.json for any other part); JUnit is written beside it",
    )
    add("--expectations", metavar="FILE", help="expectations, instead of the descriptor's")
    add(
        "--update-expectations",
        action="store_true",
        help="after the run, rewrite the expectations file: checks that pass are removed, new "
        "failures are added as xfail, to be reviewed within 30 days",
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of all inputs (default: 0)")
    add(
        "--dtypes",
        metavar="LIST",
        help="dtypes of the chapter opinfo, separated by commas; or 'pr' (one for each operator), "
        "'standard' (all for forward results, the usual ones elsewhere), 'all' (default: standard, "
        "with --tier=pr pr)",
    )
    add(
        "--fallback",
        choices=FALLBACK_POLICIES,
        default=ALLOW,
        help="operators that ran by CPU fallback. allow: they are only in the report (default). "
        "warn: they are also listed at the end. forbid: a check that used one fails, and names "
        "it. The last two need a backend that counts its fallbacks",
    )
    add(
        "--show-reasons",
        action="store_true",
        help="list at the end every reason why checks neither passed nor failed, with the checks, "
        "instead of one line for each kind of reason; -v does the same",
    )
    add(
        "--next",
        action="store_true",
        help="list at the end what to implement next: missing operators, functions and "
        "capabilities, by the number of checks that need each. Details of failures are left out, "
        "unless --tb or -r is given",
    )
    add(
        "--checks-dir",
        metavar="DIR",
        help="directory of additional chapters: DIR/*.py with DIR/requirements/*.yaml",
    )


def verification(config: pytest.Config) -> Verification | None:
    """The rounds of --verify. Without --verify-seed the first seed is random; the run prints it."""
    rounds, seed = (config.getoption(name) for name in OPTIONS)
    if rounds is None:
        if seed is not None:
            raise pytest.UsageError("--verify-seed needs --verify")
        return None
    if rounds < 1:
        raise pytest.UsageError("--verify needs a number of rounds above 0")
    if config.getoption("--isolate") == "none":
        raise pytest.UsageError("--verify needs worker processes: leave out --isolate=none")
    if config.getoption("dist", "no") != "no" or hasattr(config, "workerinput"):
        raise pytest.UsageError("--verify has its own workers: use --workers instead of -n")
    return Verification(rounds, random.randrange(10**6) if seed is None else seed)
