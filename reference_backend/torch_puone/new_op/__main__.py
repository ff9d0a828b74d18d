# SPDX-License-Identifier: BSD-3-Clause
"""Write the first text of an operator: its rows, its kernel and its test.

    python -m torch_puone.new_op aten::special_i1 --dry-run
    python -m torch_puone.new_op aten::special_chebyshev_polynomial_t --like atan2 --dry-run
    python -m torch_puone.new_op --missing build/conformance/mychip.json

In a checkout the pieces are inserted where they belong: a row in csrc/aten/operators.yaml, a row in
csrc/hal/kernels.yaml with what is generated from it, a functor in csrc/kernels and a test in
test/aten. Elsewhere they are printed, or written by --out DIR, also where a repository has no
csrc/kernels. Only structured operators that compute each element of the
result of one element of each operand have a skeleton. The operands are called x, or a and b, or
as in the schema; scalars as in the schema.

Exit codes: 0 written, 1 refused (the message says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from . import element_types, skeleton, todo
from .checkout import Checkout, Model
from .operators import Operator, SkeletonError, find
from .skeleton import Choices, Skeleton


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.operator is None) == (options.missing is None):
        parser.error("give either an operator or --missing")
    try:
        if options.missing is not None:
            print(*todo.lines(options.missing, _checkout(options)), sep="\n")
        else:
            _new(options)
    except SkeletonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m torch_puone.new_op",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("operator", nargs="?", help="such as aten::special_i1, with its overload if it has several")
    add("--like", metavar="OPERATOR", help="put it beside this one, in the same sources")
    add("--formula", metavar="C++", help="the result; without it the kernel does not compile yet")
    add("--computes", metavar="TEXT", help="the same in words, for csrc/hal/kernels.yaml")
    add("--types", metavar="WORDS", help="element types, such as reals (default: those of the CPU)")
    add("--out", type=Path, metavar="DIR", help="write the pieces into this directory instead")
    add("--dry-run", action="store_true", help="print the changes as a diff and write nothing")
    add("--root", type=Path, metavar="DIR", help="the checkout (default: around this directory)")
    add("--missing", type=Path, metavar="REPORT", help="list what a report of the suite misses")
    return parser


def _checkout(options: argparse.Namespace) -> Checkout | None:
    if options.root is None:
        return Checkout.around(Path.cwd())
    found = Checkout.around(options.root.resolve())
    if found is None:
        why = "is not in a checkout" if options.root.is_dir() else "is not a directory"
        raise SkeletonError(f"--root {options.root} {why}")
    return found


def _new(options: argparse.Namespace) -> None:
    operator, checkout = find(options.operator), _checkout(options)
    choices = _choices(options, operator, checkout)
    pieces = skeleton.write(operator, choices)
    if options.out is not None:
        _write_pieces(options.out, choices, pieces)
    elif checkout is None:
        for name, text in _pieces(choices, pieces).items():
            print(f"# {name}\n{text}\n")
    else:
        _insert(options, checkout, operator, choices, pieces)


def _choices(options: argparse.Namespace, operator: Operator, checkout: Checkout | None) -> Choices:
    model = _model(options, operator, checkout)
    given = options.types.replace(",", " ").split() if options.types else []
    types = given or element_types.measured(operator) or model.types
    if not types:
        raise SkeletonError(f"the CPU does not say which element types {operator.base} is for")
    for word in types:
        if not element_types.is_known(word):
            raise SkeletonError(f"there are no element types {word}")
    computes = options.computes or options.formula or f"what torch computes as {operator.base}"
    return Choices(model.source, model.family, types, options.formula, computes)


def _model(options: argparse.Namespace, operator: Operator, checkout: Checkout | None) -> Model:
    if options.like is not None:
        if checkout is None:
            raise SkeletonError("--like takes a row of a checkout, and this is none")
        try:
            return checkout.model(find(options.like))
        except SkeletonError as error:
            raise SkeletonError(f"--like {options.like}: {error}") from None
    number = len(operator.tensors)
    special = operator.base.startswith("special_") and number < 3
    source = "special" if special else {1: "unary_simple", 2: "binary"}.get(number, "ternary")
    return Model(f"pointwise/{source}.cpp", source, [])


def _pieces(choices: Choices, pieces: Skeleton) -> dict[str, str]:
    """The pieces by the names of their files."""
    files = {
        "operators.yaml": f"operators:\n  {choices.source}:\n  - {pieces.row}",
        "kernels.yaml": f"families:\n  {choices.family}:\n    kernels:\n      {pieces.kernel_row}",
        f"kernels_{choices.family}.cpp": f"{pieces.functor}\n\n{pieces.definition}",
        f"test_{pieces.kernel_name}.py": pieces.test.rstrip("\n"),
    }
    if pieces.aten_class:
        files[f"aten_{choices.source.replace('/', '_')}"] = pieces.aten_class
    return files


def _write_pieces(folder: Path, choices: Choices, pieces: Skeleton) -> None:
    files = {folder / name: text for name, text in _pieces(choices, pieces).items()}
    for path in files:
        if path.exists():
            raise SkeletonError(f"{path} exists already")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text + "\n", encoding="utf-8")
        print(path)


def _insert(
    options: argparse.Namespace,
    checkout: Checkout,
    operator: Operator,
    choices: Choices,
    pieces: Skeleton,
) -> None:
    plan = checkout.plan(operator, pieces, choices.source, choices.family)
    if options.dry_run:
        print(plan.diff(), end="")
        return
    plan.write()
    print(*plan.changes, sep="\n")
    print("next:")
    if choices.formula is None:
        print(f"  write the formula in {pieces.functor_name} of csrc/kernels/{choices.family}.cpp")
    print(f"  make build, then python -m pytest test/aten/test_{pieces.kernel_name}.py")
    print(f"  known answers of {pieces.kernel_name} in hal_conformance/src/hal_conformance/")
    print("  make operators, for docs/operators.md")
    print("  raise the version of csrc/hal/kernels.yaml, once between two releases of drivers")


if __name__ == "__main__":
    sys.exit(main())
