# SPDX-License-Identifier: BSD-3-Clause
"""Who may look at whom: the arrows of the architecture, as data, and a checker of sources.

    aten/<family> -> aten/core
    bindings -> {aten/core, autocast, profiler, sanitizer, graph, distributed, extension}
             -> runtime -> hal
    aten -> kernels' C interface           drivers -> hal, kernels

Arrows go down only and may be followed further: bindings may look at the runtime, the runtime never
at aten. The C++ side is judged by its #include lines, the Python side by its import statements. A
third rule keeps vendors apart: outside drivers/cuda and the tool that migrates from CUDA, no code
says "cuda".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CPP_SUFFIXES = {".h", ".hpp", ".cuh", ".c", ".cc", ".cpp", ".cu"}
TORCH_ROOTS = {"ATen", "c10", "torch", "caffe2"}
INTEGRATIONS = ("autocast", "profiler", "sanitizer", "graph", "distributed", "extension")
ARGUMENTS = ("kernels/args.h", "kernels/args")
SPLIT = ("aten", "drivers")  # directories whose subdirectories are layers


@dataclass(frozen=True)
class Layer:
    """What the files of one directory of csrc/ may include, besides each other and the system."""

    project: tuple[str, ...]  # arrows: files or directories under csrc/
    torch: bool  # whether ATen, c10 and torch headers are allowed
    python: bool = False  # whether Python.h and pybind11 are allowed


LAYERS = {
    "hal": Layer(project=(), torch=False),
    "kernels": Layer(project=(), torch=False),
    # Each driver is a layer of its own: sim must not lean on cuda, nor the other way round.
    "drivers/*": Layer(
        project=(
            *("hal/hal.h", "hal/collective.h", "hal/ipc.h", "hal/module.h", "hal/origin.h"),
            *("hal/shared_file.h", "hal/validation.h"),
            *("kernels", "drivers/common"),
        ),
        torch=False,
    ),
    "runtime": Layer(project=("hal", "kernels/args.h"), torch=True),
    # What a backend needs before it has one operator of its own; it does not know the operators.
    "aten/core": Layer(project=("runtime", *ARGUMENTS), torch=True),
    # The operators, a directory for each family; the families may share their helpers.
    "aten/*": Layer(project=("aten", "runtime", *ARGUMENTS), torch=True),
    **{name: Layer(project=("runtime",), torch=True) for name in INTEGRATIONS},
    "bindings": Layer(
        project=("aten/core", *INTEGRATIONS),
        torch=True,
        python=True,
    ),
}

# Where each Python package is, for those that are not at the root of the checkout.
PYTHON_HOME = {
    "torch_puone": "reference_backend/torch_puone",
    "torch_conformance": "conformance",
    "hal_conformance": "hal_conformance",
    "torch_backend_ci": "ci",
}
# Python package -> packages it may import only lazily (inside a function), and never.
PYTHON_LAZY = {"torch_backend_ci": {"torch"}}
PYTHON_NEVER = {
    "torch_conformance": {"torch_puone", "hal_conformance", "torch_backend_ci", "bench"},
    "hal_conformance": {"torch_puone", "torch_conformance", "torch", "torch_backend_ci", "bench"},
    "torch_backend_ci": {"torch_puone", "bench"},
    "torch_puone": {"torch_conformance", "hal_conformance", "torch_backend_ci", "bench"},
}

# Where a vendor's name is allowed outside its driver: file, the exact code around it, and why.
VENDOR = "cuda"
VENDOR_HOMES = (
    "csrc/drivers/cuda",
    "reference_backend/torch_puone/migrate",  # what it takes the place of
)
PRECISION = "csrc/aten/core/tf32.h"
WRAPPER = "reference_backend/torch_puone/_inductor/wrapper.py"
SCAFFOLD = "reference_backend/torch_puone/new/"
VENDOR_ALLOWED = {
    (PRECISION, "Float32Backend::CUDA"): "torch's name of a setting, beside that of oneDNN",
    (SCAFFOLD + "edits.py", "DRIVER cuda sim"): "a line of CMakeLists.txt that is replaced",
    (SCAFFOLD + "edits.py", "sim cuda template host"): "a line of CMakeLists.txt that is replaced",
    (SCAFFOLD + "edits.py", "PUONE_CUDA"): "a line of pyproject.toml that is left out",
    (SCAFFOLD + "sources.py", "cmake/cuda"): "a file that is left out",
    (WRAPPER, "codegen_cuda_stream_enter"): "inductor's name for streams of any device",
}


@dataclass(frozen=True)
class Violation:
    """One forbidden arrow, printable as a compiler prints an error."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


def check(root: Path) -> list[Violation]:
    """Every violation in the checkout at `root`, in file order."""
    found = [v for path in _files(root / "csrc", CPP_SUFFIXES) for v in check_cpp(root, path)]
    for package in PYTHON_NEVER:
        for path in _files(root / PYTHON_HOME.get(package, package), {".py", ".pyi"}):
            found += check_python(root, path)
    return found


def check_cpp(root: Path, path: Path) -> list[Violation]:
    """The violations of one C or C++ file."""
    name = path.relative_to(root).as_posix()
    text = path.read_text()
    code = strip_cpp_comments(text)
    found = [
        Violation(name, line, reason)
        for line, header in includes(code)
        if (reason := forbidden_include(name, header))
    ]
    return found + list(_vendor_words(name, code))


def forbidden_include(name: str, header: str) -> str | None:
    """Why file `name` ("csrc/...") must not include `header`, or None if it may."""
    folder = layer_of(name)
    split, _, part = folder.partition("/")
    layer = LAYERS.get(folder) or (LAYERS.get(f"{split}/*") if part else None)
    if layer is None:
        return f"csrc/{folder} is not a layer of this project; add it to test/layering/layers.py"
    first = header.split("/")[0]
    if first in TORCH_ROOTS and not layer.torch:
        return f"{folder} must not know PyTorch, but includes {header}"
    if (first == "pybind11" or header == "Python.h") and not layer.python:
        return f"only bindings may know Python, but {folder} includes {header}"
    if header.startswith("."):
        return f"{header} goes around the layers; include it by its path from csrc/"
    if "/" not in header or first not in {key.split("/")[0] for key in LAYERS}:
        return None  # the system, torch, or a neighbour in the same directory
    allowed = (folder, *_below(layer))
    if any(header == target or header.startswith(target + "/") for target in allowed):
        return None
    return f"{folder} must not include {header}; it may include {', '.join(allowed)}"


def _below(layer: Layer) -> tuple[str, ...]:
    """Everything that can be reached from a layer by following arrows, without repetition."""
    reached = dict.fromkeys(layer.project)
    for target in layer.project:
        if target in LAYERS:
            reached |= dict.fromkeys(_below(LAYERS[target]))
    return tuple(reached)


def layer_of(name: str) -> str:
    """The layer of file "csrc/...": its directory under csrc, or one below that where split."""
    parts = name.split("/")[1:-1]
    return "/".join(parts[:2]) if parts[:1] and parts[0] in SPLIT else "".join(parts[:1])


def includes(code: str) -> Iterator[tuple[int, str]]:
    """(line, header) of every #include and __has_include in comment-free code."""
    pattern = re.compile(r'(?:^\s*#\s*include\s*|\b__has_include\s*\(\s*)[<"]([^>"]+)[>"]')
    for line, text in enumerate(code.splitlines(), start=1):
        for match in pattern.finditer(text):
            yield line, match.group(1)


def strip_cpp_comments(text: str) -> str:
    """The code with comments blanked and line numbers kept; strings stay."""
    comment = r"//[^\n]*|/\*.*?\*/"
    literal = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])\''
    pattern = re.compile(f"{comment}|{literal}", re.DOTALL)

    def blank(match: re.Match[str]) -> str:
        token = match.group()
        return token if token[0] in "\"'" else re.sub(r"[^\n]", " ", token)

    return pattern.sub(blank, text)


def check_python(root: Path, path: Path) -> list[Violation]:
    """The violations of one Python file."""
    name = path.relative_to(root).as_posix()
    package = _package_of(name)
    tree = ast.parse(path.read_text(), filename=name)
    found = []
    for node, line, module in imports(tree):
        target = module.split(".")[0]
        if target in PYTHON_NEVER.get(package, set()):
            found.append(Violation(name, line, f"{package} must never import {target}"))
        if target in PYTHON_LAZY.get(package, set()) and node in _at_start_up(tree):
            found.append(Violation(name, line, f"{package} must not import {target} at start-up"))
    if package == "torch_puone":
        found += _vendor_words(name, strip_python_prose(tree))
    return found


def _package_of(name: str) -> str:
    for package, home in PYTHON_HOME.items():
        if name.startswith(home + "/"):
            return package
    return name.split("/")[0]


def imports(tree: ast.AST) -> Iterator[tuple[ast.AST, int, str]]:
    """(node, line, module) of every import, import_module() and __import__() of a literal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node, node.lineno, node.module
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = ast.unparse(node.func).split(".")[-1]
            if called in {"import_module", "__import__", "importorskip"}:
                yield node, node.lineno, str(node.args[0].value)


def strip_python_prose(tree: ast.Module) -> str:
    """The code without comments and docstrings, each statement on its own line number."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.copy_location(ast.Constant(value=...), node.value)
    lines: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.alias | ast.arg):
            word = ast.unparse(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            word = node.name
        elif isinstance(node, ast.ImportFrom):
            word = node.module or ""
        else:
            continue
        lines[node.lineno] = f"{lines.get(node.lineno, '')} {word}"
    return "\n".join(lines.get(n, "") for n in range(1, max(lines, default=0) + 1))


def _at_start_up(tree: ast.Module) -> set[ast.AST]:
    """Nodes that run when the module is imported: not inside a function, not for type checkers."""
    seen: set[ast.AST] = set()
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        seen.add(node)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            todo += node.orelse
        else:
            todo += ast.iter_child_nodes(node)
    return seen


def _vendor_words(name: str, code: str) -> Iterator[Violation]:
    if name.startswith(tuple(f"{home}/" for home in VENDOR_HOMES)):
        return
    for line, text in enumerate(code.splitlines(), start=1):
        for (path, allowed), _why in VENDOR_ALLOWED.items():
            if name == path:
                text = text.replace(allowed, "")
        if VENDOR in text.lower():
            yield Violation(name, line, f'only {VENDOR_HOMES[0]} says "{VENDOR}": {text.strip()}')


def _files(folder: Path, suffixes: set[str]) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in suffixes)
