# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci surface usage`: collect what backends use of a torch."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable
from pathlib import Path

import yaml

from torch_backend_ci import output
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.surface import usage
from torch_backend_ci.surface.evidence import cpp, libraries, python
from torch_backend_ci.surface.evidence.declaring import Declaring
from torch_backend_ci.surface.extract.python_modules import Modules
from torch_backend_ci.surface.model import Domain
from torch_backend_ci.surface.verbs import arguments
from torch_backend_ci.surface.verbs.diff import snapshot_of
from torch_backend_ci.torch_tree import TorchTree, locate

DESCRIPTION = """
Collect the headers, C++ names and Python names of a torch that backends use, from directories with
their sources or their unpacked wheels, and write them into the file of collected usage. The
catalogue of what is watched (surface/surfaces.yaml) takes in what stands there.
"""
EXAMPLES = """
examples:
  torch-backend-ci surface usage --torch 2.13.0 puone=csrc puone=reference_backend
  pip download --no-deps torch-npu && unzip -d npu torch_npu-*.whl
  torch-backend-ci surface usage --torch 2.13.0 torch_npu=npu

What is known of other backends stays. Exit status: 0 the file is written; 2 a directory or the
torch cannot be read.
"""

Found = dict[str, dict[str, set[str]]]  # section -> name -> backends


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("backends", nargs="+", metavar="NAME=DIR", help="a backend, and its files")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=usage.COLLECTED,
        metavar="F",
        help="default: %(default)s",
    )
    arguments.add_torch(parser)
    arguments.add_cache(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Collect and merge."""
    tree = locate(args.torch, args.cache)
    known = usage.read(args.output) if args.output.is_file() else usage.NOTHING
    folders: dict[str, list[Path]] = {}
    for word in args.backends:
        name, _, folder = word.partition("=")
        if not name or not Path(folder).is_dir():
            raise CiError(f"{word}: NAME=DIR is expected, with a directory")
        folders.setdefault(name, []).append(Path(folder))
    found: Found = {"cpp": {}, "headers": {}, "python": {}}
    collector = _Collector(tree, _members(args.torch, args.cache))
    for name, places in folders.items():
        for title, names in collector.collect(places).items():
            for used in names:
                found[title].setdefault(used, set()).add(name)
    merged = usage.merged(known, set(folders), found)
    output.show(dumps(merged), args.output)
    return Exit.OK


def _members(where: str, cache: Path) -> list[tuple[str, str]]:
    """Class and name of every member of the torch's snapshot."""
    kinds = {"method", "field"}
    taken = snapshot_of(where, cache).declarations
    split = (d.name.rpartition("::") for d in taken if d.kind in kinds and d.domain is Domain.CPP)
    return sorted({(owner, member) for owner, _, member in split})


class _Collector:
    """Collects what the files of one backend use of one torch."""

    def __init__(self, tree: TorchTree, members: list[tuple[str, str]]) -> None:
        self._include = tree.include
        self._members = members
        self._modules, self._declaring = Modules(tree.root), Declaring(tree)

    def collect(self, folders: Iterable[Path]) -> dict[str, set[str]]:
        """The names by section."""
        texts, linked, python_names = [], set[str](), set[str]()
        for folder in folders:
            texts += list(cpp.sources(folder))
            linked |= libraries.names(folder)
            python_names |= python.names(folder, self._modules)
        included = {header for text in texts for header in cpp.includes(text)}
        headers = {h for h in included if any((i / h).is_file() for i in self._include)}
        headers |= {header for name in linked for header in self._declaring.headers(name)}
        named = {name for text in texts for name in cpp.names(text)} | linked
        used = {name for name in named if self._declaring.headers(name)}
        used |= self._used_members({word for text in texts for word in cpp.words(text)})
        return {"cpp": used, "headers": headers, "python": python_names}

    def _used_members(self, words: Collection[str]) -> set[str]:
        """The members whose own name and whose class's name the sources mention."""
        return {
            f"{owner}::{member}"
            for owner, member in self._members
            if member in words and owner.rpartition("::")[2] in words
        }


def dumps(known: usage.Usage) -> str:
    """The data as YAML, a name per line."""
    lines = [
        "# SPDX-License-Identifier: BSD-3-Clause",
        "# Which backends use what of PyTorch. Written by `torch-backend-ci surface usage`; what",
        "# each section means is said in usage.yaml, to which this is added.",
        "",
        f"backends: [{', '.join(sorted(known.backends))}]",
    ]
    for title in ("cpp", "headers", "python"):
        section = getattr(known, title)
        lines += ["", f"{title}:" if section else f"{title}: {{}}"]
        lines += [f"  {_key(n)}: [{', '.join(sorted(section[n]))}]" for n in sorted(section)]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    plain = yaml.safe_dump(name, width=1000).strip().removesuffix("\n...")
    return f'"{name}"' if ": " in name or name.endswith(":") or ":" in name else plain
