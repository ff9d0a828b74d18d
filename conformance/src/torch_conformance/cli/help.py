# SPDX-License-Identifier: BSD-3-Clause
"""Print a section of the suite's README, or a chapter of the walkthrough for new backends.

Without TOPIC: the names of all topics. A part of a name is enough if it belongs to one topic only.

  python -m torch_conformance help descriptor

Exit code 0: printed; 4: there is no such topic, or there are several.
"""

from __future__ import annotations

import argparse

from torch_conformance.cli import CommandError
from torch_conformance.cli.topics import find, topics

SUMMARY = "print a section of the README or a chapter of the walkthrough"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The topic."""
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="such as descriptor")


def run(arguments: argparse.Namespace) -> int:
    """Print the text, or the names."""
    texts = topics()
    if arguments.topic is None:
        print("\n".join(texts))
        return 0
    found = find(arguments.topic)
    if len(found) != 1:
        names = ", ".join(found or texts)
        what = "several topics have this in their names" if found else "there is no such topic"
        raise CommandError(f"{arguments.topic}: {what}: {names}")
    print(texts[found[0]])
    return 0
