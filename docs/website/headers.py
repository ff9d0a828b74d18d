# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the C and C++ interface, from the comments in the public headers.

libclang parses a header. What it declares, with the comment above it or beside it, becomes a
directive of Sphinx's domain of C++. Declarations without a blank line or a comment between them
share the comment above the first.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch.utils.cpp_extension
import yaml
from clang import cindex
from clang.cindex import AccessSpecifier, Cursor, TranslationUnit
from clang.cindex import CursorKind as Kind

from website.restructured import escaped, heading

ROOT = Path(__file__).resolve().parents[2]
DIRECTORY = "cpp"
INCLUDE = ("csrc", "csrc/extension/include", "build/generated")
#: The directive of each kind of declaration that is documented.
DIRECTIVES = {
    Kind.CLASS_DECL: "class",
    Kind.CLASS_TEMPLATE: "class",
    Kind.STRUCT_DECL: "struct",
    Kind.ENUM_DECL: "enum",
    Kind.ENUM_CONSTANT_DECL: "enumerator",
    Kind.FIELD_DECL: "member",
    Kind.VAR_DECL: "var",
    Kind.FUNCTION_DECL: "function",
    Kind.FUNCTION_TEMPLATE: "function",
    Kind.CXX_METHOD: "function",
    Kind.CONSTRUCTOR: "function",
    Kind.CONVERSION_FUNCTION: "function",
    Kind.TYPEDEF_DECL: "type",
    Kind.TYPE_ALIAS_DECL: "type",
    Kind.MACRO_DEFINITION: "macro",
}
#: Members that mean the same in every struct of the HAL.
CONVENTIONAL = {
    "struct_size": "Bytes of this struct, as the side that fills it in was compiled.",
    "version": "Version of the extension that the driver implements.",
    "reserved": "0, and not read.",
}
SCOPES = (Kind.NAMESPACE, Kind.LINKAGE_SPEC)
COMPOUND = (Kind.CLASS_DECL, Kind.CLASS_TEMPLATE, Kind.STRUCT_DECL, Kind.ENUM_DECL)


class Page(NamedTuple):
    """An entry of headers.yaml."""

    page: str
    title: str
    purpose: str
    headers: tuple[str, ...]


@dataclass
class Entity:
    """Declarations that share a comment, and what is in them."""

    directive: str
    name: str
    comment: str
    declarations: list[str]
    line: int
    scope: str = ""
    """The namespace it is in."""
    members: list[Entity] = field(default_factory=list)


class HeaderError(Exception):
    """A header that libclang cannot parse."""


@functools.cache
def listed() -> tuple[Page, ...]:
    """The pages, as headers.yaml has them."""
    entries = yaml.safe_load((Path(__file__).parent / "headers.yaml").read_text())
    return tuple(Page(**{**entry, "headers": tuple(entry["headers"])}) for entry in entries)


def pages() -> Iterator[tuple[str, str]]:
    """(file, text) of every page."""
    for page in listed():
        body = "\n".join(map(_header, page.headers))
        text = f"{heading(page.title, '=')}\n{page.purpose}\n\n{body}"
        yield f"{DIRECTORY}/{page.page}.rst", text


def entities(header: str) -> list[Entity]:
    """What a header declares for others; raises HeaderError."""
    text = (ROOT / header).read_text()
    return _grouped([each for cursor in _cursors(header) for each in _unwrapped(cursor)], text)


def introduction(header: str) -> str:
    """The comment at the head of a header, without licence and file name."""
    text = (ROOT / header).read_text()
    comments = re.match(r"(?:\s*(?:/\*.*?\*/|//[^\n]*\n))+", text, re.DOTALL)
    plain = _plain(comments[0]) if comments else ""
    kept = [line for line in plain.splitlines() if "SPDX-License-Identifier" not in line]
    return re.sub(rf"\A\s*{re.escape(Path(header).name)} - ", "", "\n".join(kept)).strip("\n")


def _header(header: str) -> str:
    include = re.sub(r"^csrc/(extension/include/)?", "", header)
    listed = [
        f"{heading(include, '-')}\n{_prose(introduction(header))}\n\n:File: :source:`{header}`\n"
    ]
    scope = None
    for entity in entities(header):
        if entity.scope != scope:
            scope = entity.scope
            listed.append(f".. cpp:namespace:: {scope or 'NULL'}\n")
        listed.append(_directive(entity))
    return "\n".join(listed)


def _directive(entity: Entity, indent: str = "") -> str:
    domain = "c" if entity.directive == "macro" else "cpp"
    start = f"{indent}.. {domain}:{entity.directive}:: "
    lines = f"\n{' ' * len(start)}".join(entity.declarations)
    inner = indent + "   "
    text = "\n".join(inner + line if line else "" for line in _prose(entity.comment).splitlines())
    members = "\n".join(_directive(member, inner) for member in entity.members)
    return f"{start}{lines}\n\n{text}\n\n{members}\n"


def _cursors(header: str) -> list[Cursor]:
    """What a header has at its top; the headers of a page are parsed together."""
    page = next((page.headers for page in listed() if header in page.headers), (header,))
    return _by_file(page)[str(ROOT / header)]


@functools.cache
def _by_file(included: tuple[str, ...]) -> dict[str, list[Cursor]]:
    """What each file has at its top, of those that are read with these headers."""
    found = defaultdict(list)
    for cursor in _parsed(included).cursor.get_children():
        if cursor.location.file is not None:
            found[cursor.location.file.name].append(cursor)
    return found


@functools.cache
def _parsed(included: tuple[str, ...]) -> TranslationUnit:
    main = str(ROOT / "page.cpp")  # never written
    unit = cindex.Index.create().parse(
        main,
        [
            *("-xc++", "-std=c++20", "-fparse-all-comments", "-nostdinc"),
            *(f"-I{ROOT / directory}" for directory in INCLUDE),
            *(f"-isystem{directory}" for directory in _system()),
        ],
        unsaved_files=[(main, "".join(f'#include "{ROOT / name}"\n' for name in included))],
        options=TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
        | TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD,
    )
    for diagnostic in unit.diagnostics:
        if diagnostic.severity >= cindex.Diagnostic.Error:
            raise HeaderError(str(diagnostic))
    return unit


@functools.cache
def _system() -> list[str]:
    """The directories of torch's headers, and those of the compiler."""
    command = ["c++", "-xc++", "-E", "-v", "/dev/null"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    listed = said.partition("#include <...> search starts here:")[2].partition("End of")[0]
    return [*torch.utils.cpp_extension.include_paths(), *listed.split()]


def _unwrapped(cursor: Cursor) -> Iterator[Cursor]:
    """The cursor, or what is in it if it is a namespace."""
    if cursor.kind in SCOPES:
        for each in cursor.get_children():
            yield from _unwrapped(each)
    elif _is_documented(cursor):
        yield cursor


def _is_documented(cursor: Cursor) -> bool:
    if cursor.kind not in DIRECTIVES or cursor.access_specifier in (
        AccessSpecifier.PRIVATE,
        AccessSpecifier.PROTECTED,
    ):
        return False
    if cursor.kind == Kind.MACRO_DEFINITION:
        return cursor.extent.end.column > len(cursor.spelling) + 9  # not an include guard
    if cursor.kind in COMPOUND and not (cursor.is_definition() and cursor.spelling):
        return False
    if cursor.kind == Kind.TYPEDEF_DECL and any(
        each.kind in COMPOUND and each.spelling == cursor.spelling for each in cursor.get_children()
    ):
        return False  # typedef struct x {...} x
    if _scope(cursor).startswith("std") or "detail" in _scope(cursor).split("::"):
        return False
    # Copying and moving is described with the class.
    return not re.search(r"= (delete|default)$|&& other\)", _declaration(cursor))


def _grouped(cursors: list[Cursor], text: str) -> list[Entity]:
    found: list[Entity] = []
    end = -1
    shared = False
    for cursor in sorted(cursors, key=lambda each: each.extent.start.offset):
        comment = _comment(cursor, text)
        directive = DIRECTIVES[cursor.kind]
        first = cursor.extent.start.line
        if (
            found
            and shared
            and not comment
            and first <= end + 1
            and found[-1].directive == directive
            and cursor.kind not in COMPOUND
        ):
            found[-1].declarations.append(_declaration(cursor))
        else:
            members = [each for each in cursor.get_children() if _is_documented(each)]
            found.append(
                Entity(
                    "enum-class" if cursor.is_scoped_enum() else directive,
                    cursor.spelling,
                    comment,
                    [_declaration(cursor)],
                    first,
                    _scope(cursor),
                    _grouped(members, text) if cursor.kind in COMPOUND else [],
                )
            )
        end = cursor.extent.end.line
        shared = shared if not comment else not _beside(cursor, text)
    return found


def _beside(cursor: Cursor, text: str) -> bool:
    """Whether the comment of a declaration stands behind it, for it alone."""
    behind = text.splitlines()[cursor.extent.end.line - 1][cursor.extent.end.column - 1 :]
    return bool(cursor.raw_comment) and cursor.raw_comment.splitlines()[0] in behind


def _scope(cursor: Cursor) -> str:
    names = []
    parent = cursor.semantic_parent
    while parent is not None and parent.kind == Kind.NAMESPACE:
        names.append(parent.spelling)
        parent = parent.semantic_parent
    return "::".join(reversed(names))


def _comment(cursor: Cursor, text: str) -> str:
    if cursor.kind == Kind.FIELD_DECL and not cursor.raw_comment:
        return CONVENTIONAL.get(cursor.spelling, "")
    if cursor.kind != Kind.MACRO_DEFINITION:
        return _plain(cursor.raw_comment or "")
    above = text[: text.rfind("\n", 0, cursor.extent.start.offset) + 1]
    comment = re.search(
        r"(?:/\*(?:(?!\*/).)*\*/\n|(?://[^\n]*\n)+)(?:#if[^\n]*\n)?\Z", above, re.DOTALL
    )
    return _plain(comment[0]) if comment else ""


def _declaration(cursor: Cursor) -> str:
    """A declaration in one line, without its body."""
    if cursor.kind == Kind.MACRO_DEFINITION:
        return cursor.spelling
    if cursor.kind == Kind.ENUM_DECL:
        return f"{cursor.spelling} : {cursor.enum_type.spelling}"
    text = Path(cursor.location.file.name).read_bytes()
    written = text[cursor.extent.start.offset : cursor.extent.end.offset].decode()
    written = re.sub(r"//[^\n]*|/\*.*?\*/", "", written, flags=re.DOTALL)
    written = re.sub(r"__attribute__\(\(.*?\)\)|\b(?:extern|typedef|using)\b", "", written)
    head = _head(" ".join(written.split()))
    if cursor.kind == Kind.FIELD_DECL and re.search(r"\w, \w+$", head) and "(" not in head:
        return f"{cursor.type.spelling} {cursor.spelling}"
    if cursor.kind in COMPOUND:
        return re.sub(rf"^.*?\b(?=(?:\w+::)*{cursor.spelling}\b)", "", _templated(head))
    return head


def _templated(head: str) -> str:
    return re.sub(r"\b(class|struct|enum class|enum) (?=\w)", "", head)


def _head(written: str) -> str:
    """What is written before a body or the initialisers of a constructor."""
    depth = 0
    for index, character in enumerate(written):
        depth += (character in "(<[") - (character in ")>]")
        colon = character == ":" and ":" not in (written[index - 1], written[index + 1 : index + 2])
        if depth == 0 and (
            character == "{" or (colon and written[:index].endswith((") ", " noexcept ")))
        ):
            return written[:index].strip()
    return written.strip()


def _plain(comment: str) -> str:
    """The words of a comment, in its lines."""
    lines = []
    for line in comment.splitlines():
        bare = re.sub(r"^\s*(?:/\*+!?|///?<?|\*(?!/))? ?|\s*\*/\s*$", "", line)
        lines.append(bare.rstrip())
    return "\n".join(lines).strip("\n")


def _prose(comment: str) -> str:
    """A comment in reStructuredText: paragraphs, and lists of lines that begin with a hyphen."""
    lines: list[str] = []
    for line in comment.splitlines():
        text = line.strip()
        if set(text) == {"-"}:
            continue  # underlines a title
        item = text.startswith("- ")
        if item and lines and lines[-1] and not lines[-1].startswith(("- ", "  ")):
            lines.append("")
        inside = bool(lines) and lines[-1].startswith(("- ", "  "))
        lines.append(
            ("  " if inside and text and not item else "") + escaped(" ".join(text.split()))
        )
    return "\n".join(lines)
