# SPDX-License-Identifier: BSD-3-Clause
"""Move pins to the newest suitable torch: on the index, not yanked, with a wheel for each Python. A
pin never moves to an older version, except from one that was yanked or removed, and only with
--reason. A pin that needs no change is not written."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from torch_backend_ci import output
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.output import printable, say
from torch_backend_ci.pin import changes, file, offers
from torch_backend_ci.pin.model import Pin
from torch_backend_ci.pin.update import Decision, Wish, decide
from torch_backend_ci.pin.verbs.each import each

EXAMPLES = """\
The pin's `source` says how its next version is found: `release` and `nightly` take the newest one;
`people` needs --to.

examples:
  torch-backend-ci pin update --dry-run                 the diff, and nothing is written
  torch-backend-ci pin update development --to 2.14.1   requirements/torch.txt changes with it
  torch-backend-ci pin update newest --reason 'hangs, https://...'    back from a yanked version

Exit status: 0 success; 1 only a person can repair a pin; 2 an index does not answer.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--to, --reason, --dry-run."""
    add_wish(parser)
    parser.add_argument("--dry-run", action="store_true", help="print a diff, write nothing")


def add_wish(parser: argparse.ArgumentParser) -> None:
    """--to, --reason."""
    parser.add_argument("--to", metavar="VERSION", help="move to this version; for one pin only")
    parser.add_argument("--reason", help="replaces the reason in the pin; for one pin only")


def run(args: argparse.Namespace) -> int:
    """Move each."""
    pins = file.read_all(args.pins, args.root)
    wish = wish_of(args, pins)
    return each(pins, lambda pin: _update(decided(pin, wish), args.root, args.dry_run))


def _update(decision: Decision, root: Path, dry_run: bool) -> Exit:
    read = changes.reader(root)
    changed = changes.changes(decision.pin, read)
    say(printable(decision.says))
    if dry_run:
        sys.stdout.write(changes.diff(changed, read))
    else:
        for place, data in changed.items():
            output.write(root / place, data)
    return Exit.FINDINGS if decision.stuck else Exit.OK


def wish_of(args: argparse.Namespace, pins: Sequence[object]) -> Wish:
    """What the arguments ask for."""
    if (args.to or args.reason) and len(pins) != 1:
        raise CiError("--to and --reason are for one pin: name it")
    if args.reason is not None:
        file.check_reason(args.reason)
    return Wish(args.to, args.reason)


def decided(pin: Pin, wish: Wish) -> Decision:
    """The pin as it should be, after a look at its index."""
    with offers.opened(pin.index) as shop:
        return decide(pin, shop, wish)
