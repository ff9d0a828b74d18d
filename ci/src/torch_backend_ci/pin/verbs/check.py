# SPDX-License-Identifier: BSD-3-Clause
"""Compare pins with the package index and PyTorch's repository: the version is on the index and not
yanked, each wheel has the pinned hash and was built from the pinned commit, PyTorch's repository
has that commit, and requirements/torch.txt asks for the torch of `development`."""

from __future__ import annotations

import argparse

from torch_backend_ci.errors import Exit
from torch_backend_ci.github import access, commit
from torch_backend_ci.output import printable, say
from torch_backend_ci.pin import changes, check, file, offers
from torch_backend_ci.pin.check import Upstream
from torch_backend_ci.pin.model import Pin
from torch_backend_ci.pin.verbs.each import each

EXAMPLES = """\
The index is the one that pip is configured for, or PyTorch's, as the pin says
(PIN_INDEX_PYTORCH_CPU and PIN_INDEX_NIGHTLY_CPU name mirrors). PyTorch's repository is read through
GitHub's API; the token is $GITHUB_TOKEN.

examples:
  torch-backend-ci pin check
  torch-backend-ci pin check newest --no-upstream      without GitHub

Exit status: 0 all pins are valid; 1 a problem was found; 2 the index or GitHub does not answer.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--upstream, --no-upstream."""
    parser.add_argument(
        "--upstream",
        default="pytorch/pytorch",
        metavar="OWNER/NAME",
        help="the repository of the commits in git_version; default: %(default)s",
    )
    parser.add_argument("--no-upstream", action="store_true", help="do not ask GitHub")


def run(args: argparse.Namespace) -> int:
    """Say each problem; status 1 if there is one."""
    pins = file.read_all(args.pins, args.root)
    upstream = None if args.no_upstream else _upstream(args.upstream)
    return each(pins, lambda pin: _check(pin, changes.reader(args.root), upstream))


def _check(pin: Pin, read: changes.Read, upstream: Upstream | None) -> Exit:
    found = check.of_mirror(pin, read)
    if pin.torch is None:
        say(printable(f"{pin.name}: no version to check: {pin.unresolved}"))
    else:
        with offers.opened(pin.index) as shop:
            found += check.problems(pin, shop, upstream)
    for problem in found:
        print(printable(f"{problem.pin}: {problem.kind}: {problem.text}"))
    if pin.torch and not found:
        say(f"{pin.name}: torch {pin.torch.version} is as pinned")
    return Exit.FINDINGS if found else Exit.OK


def _upstream(name: str) -> Upstream:
    repository = access.repository(argparse.Namespace(repo=name))
    return lambda sha: commit.exists(repository, sha)
