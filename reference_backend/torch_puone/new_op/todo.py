# SPDX-License-Identifier: BSD-3-Clause
"""The operators that a report of the suite says are missing, and what to do about each."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .checkout import Checkout
from .operators import SkeletonError, find, forms

_MOST = 1_000_000


def lines(report: Path, checkout: Checkout | None) -> Iterator[str]:
    """A line for each operator, in the suite's order: what most checks wait for is first."""
    for name in missing(report):
        yield f"aten::{name}: {_what_to_do(name, checkout)}"


def missing(report: Path) -> list[str]:
    """The operators that the suite's own list names. Raises SkeletonError without the suite."""
    if not report.is_file():
        raise SkeletonError(f"--missing {report} is not a file")
    command = [sys.executable, "-m", "torch_conformance", "next", str(report), "-n", str(_MOST)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).removeprefix("error: ")
        raise SkeletonError(f"`python -m torch_conformance next` cannot read the report: {said}")
    found = re.findall(r"\baten::(\w+(?:\.\w+)?)", done.stdout)
    return list(dict.fromkeys(found))


def _what_to_do(name: str, checkout: Checkout | None) -> str:
    if checkout is not None:
        for form in forms(name):
            if form in checkout.rows:
                return _row_is_there(checkout.kernels(form))
    try:
        return f"python -m torch_puone.new_op aten::{find(name).functional}"
    except SkeletonError as error:
        return str(error)


def _row_is_there(kernels: list[str]) -> str:
    write = f"write {' and '.join(kernels)} in the driver, or " if kernels else ""
    return f"has a row already; {write}see why it is not used"
