# SPDX-License-Identifier: BSD-3-Clause
"""The options of a run, with the help that explains them."""

from __future__ import annotations

import random

import pytest

from torch_conformance.judging.judge import ALLOW, FALLBACK_POLICIES, Verification
from torch_conformance.judging.reruns import LIMIT
from torch_conformance.judging.rounds import OPTIONS
from torch_conformance.spec.catalogue import PR_TIER, TIERS


def add_options(parser: pytest.Parser) -> None:
    """Add them to pytest's own, as a group."""
    group = parser.getgroup("conformance", "conformance of PyTorch device backends")
    add = group.addoption
    add(
        "--backend",
        action="append",
        metavar="NAME",
        help="backend to test: a built-in descriptor (cpu, puone), one that an installed package "
        "announces, or a device type torch knows (cuda, mps, xpu ...). Repeat for several; each "
        "has its own run and report",
    )
    add(
        "--backend-file",
        action="append",
        metavar="FILE",
        help="descriptor of a backend that is not known by name. The smallest one: "
        "'device_type: mychip' and 'import: {after_torch: [torch_mychip]}'",
    )
    add(
        "--check",
        action="append",
        metavar="ID",
        help="run only this check, such as stream/order:wait_event; 'stream/*' (only at the end) "
        "for all that begin so. Repeatable",
    )
    add(
        "--tier",
        choices=(*TIERS, PR_TIER),
        help="run this tier and the ones before it: start with smoke, then core. pr: the tiers up "
        "to training with one dtype for each operator, in minutes, for the gate of a change",
    )
    add("--list", action="store_true", help="print the selected checks with what they verify")
    add(
        "--isolate",
        choices=("chunk", "test", "none"),
        default="chunk",
        help="chunk: worker processes that run --chunk checks each (default). test: one process "
        "for each check. none: in this process, for debuggers; a crash ends the run",
    )
    add("--workers", type=int, metavar="N", help="workers at the same time (default: cores)")
    add("--chunk", type=int, metavar="N", help="checks before a worker is replaced (default: 50)")
    add(
        "--rerun-limit",
        type=int,
        default=LIMIT,
        metavar="N",
        help="unexpected results that are run again, alone in a fresh process, to tell failures "
        f"from flakes (default: {LIMIT}, not with --isolate=none). 0: none",
    )
    add(
        "--verify",
        type=int,
        metavar="N",
        help="run the selected checks N times, in shuffled order and, where the descriptor says "
        "how, under adversarial schedules; those that do not always end alike are flaky",
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
        help="run the I-th of N parts of the selected checks; the same on every machine",
    )
    add(
        "--shard-by",
        metavar="REPORT",
        help="with --shard: make parts that take the same time, by the durations in this earlier "
        "report (whole or merged, .json or .json.gz; the same file for every part). One that does "
        "not exist yet is said, and the parts are then alike in number",
    )
    add(
        "--report",
        metavar="FILE",
        help="report file, {backend} in it stands for the name "
        "(default: build/conformance/{backend}.json); JUnit is written beside it",
    )
    add("--expectations", metavar="FILE", help="expectations, instead of the descriptor's")
    add(
        "--update-expectations",
        action="store_true",
        help="after the run, rewrite the expectations file: what passes leaves it, what fails "
        "enters it as an xfail to be reviewed within 30 days",
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of all inputs (default: 0)")
    add(
        "--dtypes",
        metavar="LIST",
        help="dtypes of the OpInfo tier, separated by commas; or 'pr' (one for each operator), "
        "'standard' (all for forward results, the usual ones elsewhere), 'all' (default: standard, "
        "with --tier=pr pr)",
    )
    add(
        "--fallback",
        choices=FALLBACK_POLICIES,
        default=ALLOW,
        help="operators that the backend ran on the CPU. allow: they are noted in the report "
        "(default). warn: they are listed at the end. forbid: a check during which there were any "
        "fails, naming them. The last two need a backend that counts them",
    )
    add(
        "--show-reasons",
        action="store_true",
        help="list at the end each reason for which checks neither passed nor failed, with its "
        "checks, instead of one line for each kind; -v does so too",
    )
    add(
        "--next",
        action="store_true",
        help="tell at the end what to implement next: missing operators, functions and "
        "capabilities, by how many checks wait for each. Details of failures are left out then, "
        "unless --tb or -r asks for them",
    )
    add(
        "--checks-dir",
        metavar="DIR",
        help="further chapters: DIR/*.py with DIR/requirements/*.yaml",
    )


def verification(config: pytest.Config) -> Verification | None:
    """What --verify asks for. Without --verify-seed the first seed is drawn, and told."""
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
        raise pytest.UsageError("--verify has workers of its own: use --workers in the place of -n")
    return Verification(rounds, random.randrange(10**6) if seed is None else seed)
