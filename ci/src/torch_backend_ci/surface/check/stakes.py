# SPDX-License-Identifier: BSD-3-Clause
"""Which names a change of headers puts at stake, and which files mention one of them.

What a file declares, and whether the lines in it compile, can differ only if it mentions something
that is different: a name that stands in a changed line or around it, or one that hands the
difference on without mentioning it again: a class by its bases, a macro, a template, a function
that is computed or whose type is deduced. Of a file that no surface lists little is known, so all
types that it declares hand on what it mentions. All other files say what they said before and need
not be read again.

This is a guess about C++ from its text, so it is made only for changes that stay in their place:
none of what a header includes or defines, no operators, no namespaces, no file that comes or goes.
reading.py compares the result with the base, and reads everything if something differs that
was not at stake.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from torch_backend_ci.surface.check.reach import Changed, Includes
from torch_backend_ci.surface.extract.cpp.tokens import IDENTIFIER, tokens
from torch_backend_ci.surface.model import Declaration, Domain, Snapshot
from torch_backend_ci.torch_tree import TorchTree

MOST_NAMES = 400
MOST_LINES = 20_000  # of a changed file

_COMMENT = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL
)
_DECLARING = re.compile(r"([A-Za-z_]\w*)\s*(?:[({;=\[,]|:(?!:)|\Z)")
_MACRO = re.compile(r"\b[A-Z][A-Z0-9_]{3,}\s*\(")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*[({]")
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_FAR_REACHING = {"operator", "namespace", "extern", "concept", "requires"}
_NAMING = {"using", "typedef"}  # what such a line names is declared by it
_HANDS_ON = re.compile(r"\b(?:constexpr|consteval|auto|decltype)\b")
_ENDED = re.compile(r"(?:[;{}]|\b(?:public|protected|private)\s*:)\s*\Z")
_TYPE = re.compile(
    rb"\b(?:class|struct|union)\s+(?:[A-Z][A-Z0-9_]+\s+)?(\w+)[^;{}()]*\{"
    rb"|\busing\s+(\w+)\s*=|\btypedef\b[^;]*?(\w+)\s*;"
)
_ARGUMENTS = re.compile(r"<[^<>]*>")
_CLASSES = {"class", "enum"}
_KEYWORDS = frozenset(
    IDENTIFIER.findall(
        """
        alignas alignof auto bool break case catch char class const consteval constexpr
        const_cast continue decltype default delete do double dynamic_cast else enum explicit
        false final float for friend goto if inline int long mutable new noexcept nullptr
        override private protected public reinterpret_cast return short signed sizeof static
        static_assert static_cast std struct switch template this throw true try typedef
        typename union unsigned using virtual void volatile while size_t int8_t int16_t int32_t
        int64_t uint8_t uint16_t uint32_t uint64_t string vector optional operator
        """
    )
)


@dataclass(frozen=True)
class Stakes:
    """Names; the classes around them and all that derives from these; the files of the tree that
    mention a name, derive from a class, or are changed."""

    names: frozenset[str]
    classes: frozenset[str]
    files: frozenset[str]

    def mentioned(self, text: str) -> bool:
        """Whether a text has one of the names, or of the classes."""
        return not (self.names | self.classes).isdisjoint(IDENTIFIER.findall(text))

    def has(self, declaration: Declaration) -> bool:
        """Whether the declaration may be another one now."""
        return not self.names.isdisjoint(IDENTIFIER.findall(declaration.name))


def at_stake(
    tree: TorchTree,
    changed: Changed,
    rearranged: Collection[str],
    before: Snapshot,
    graph: Includes,
) -> Stakes | None:
    """What the change puts at stake; None if the text does not show that."""
    of_cpp = [d for d in before.declarations if d.domain is Domain.CPP]
    headers = {path: after for path, after in changed.items() if path in graph.edges}
    if rearranged or not headers:
        return None
    known = _Known(of_cpp)
    names: set[str] = set()
    classes: set[str] = set()
    for path, after in headers.items():
        place = tree.root / path
        if after is None or not place.is_file():
            return None
        found = _names(path, place.read_bytes(), after, known)
        if found is None:
            return None
        names |= found[0]
        classes |= found[1]
    texts = {
        path: headers.get(path) or (tree.root / path).read_bytes()
        for path in _seeing(tree, graph, headers)
    }
    every, files = known.derived(classes)
    listed = {path for paths in graph.listed.values() for path in paths}
    spread = _spread(names, texts, known, listed)
    if spread is None:
        return None
    return Stakes(spread[0], frozenset(every), spread[1] | files | headers.keys())


def _seeing(tree: TorchTree, graph: Includes, changed: Iterable[str]) -> Iterator[str]:
    """The files that can mean something of a changed one: those that include it, and what is
    included in the middle of another file and names nothing itself."""
    above = graph.above(changed)
    top = f"{tree.root}/"
    for path in graph.edges:
        if (path in above or "inl" in path.rpartition("/")[2]) and Path(top + path).is_file():
            yield path


class _Known:
    """The declarations of the base, by their files and scopes."""

    def __init__(self, of_cpp: Sequence[Declaration]) -> None:
        self.classes = {d.name for d in of_cpp if d.kind in _CLASSES}
        self.templates = {
            word
            for d in of_cpp
            if d.kind == "class" and "template" in d.facts
            for word in _words(d.name)
        }
        self.macros = {d.name: d.file for d in of_cpp if d.kind == "macro"}
        self.bases = [
            (_words(d.name), set(IDENTIFIER.findall(" ".join(d.facts["bases"]))), d.file)
            for d in of_cpp
            if d.facts.get("bases")
        ]
        self.of_file: dict[str, list[Declaration]] = {}
        for declaration in sorted(of_cpp, key=lambda d: d.line):
            self.of_file.setdefault(declaration.file, []).append(declaration)

    def around(self, declaration: Declaration) -> set[str]:
        """The names of the classes around a declaration, and its own if it is one."""
        parts = _plain(declaration.name).split("::")
        scopes = ["::".join(parts[:end]) for end in range(1, len(parts) + 1)]
        return {_last(scope) for scope in scopes if scope in self.classes}

    def derived(self, classes: set[str]) -> tuple[set[str], set[str]]:
        """The classes and all that derives from one of them, and the files of those."""
        files: set[str] = set()
        known, new = set(classes), set(classes)
        while new:
            below = [(words, file) for words, bases, file in self.bases if bases & new]
            files.update(file for _, file in below)
            new = {word for words, _ in below for word in words} - known
            known |= new
        return known, files


def _names(path: str, old: bytes, new: bytes, known: _Known) -> tuple[set[str], set[str]] | None:
    """What is at stake by the change of one file, and the classes around it; None if the text does
    not tell."""
    before, after = (_plain_lines(text) for text in (old, new))
    declared = known.of_file.get(path, [])
    if not declared or max(len(before), len(after)) > MOST_LINES:
        return None
    own = {word for d in declared for word in _words(d.name)}
    mentioned = set(IDENTIFIER.findall("\n".join(before)))
    names: set[str] = set()
    themselves: set[str] = set()
    classes: set[str] = set()
    for first, last, lines in _differences(before, after):
        text = "\n".join(lines)
        words = set(IDENTIFIER.findall(text))
        directive = any(line.lstrip().startswith("#") for line in lines)
        continued = any(line.endswith("\\") for line in (*lines, *before[max(0, first - 1) : last]))
        if directive or continued or words & _FAR_REACHING:
            return None
        if words & _NAMING:
            names |= words
        outside = text if _MACRO.search(text) else _without_parentheses(text)
        names |= {w for w in _DECLARING.findall(outside) if w in own or w not in mentioned}
        names |= set(_CALLED.findall(text))
        inside, near = _near(declared, before, lines, first, last)
        themselves |= {name for declaration in inside for name in _words(declaration.name)}
        classes |= {name for declaration in near for name in known.around(declaration)}
    themselves |= classes & known.templates  # whose size depends on what they are instantiated for
    elsewhere = {name for name, file in known.macros.items() if file != path}
    return (names - classes | themselves) - _KEYWORDS - elsewhere, classes


def _without_parentheses(text: str) -> str:
    """Without parameters and arguments, also those whose parenthesis opens in another line."""
    kept, depth = [""], 0
    for char in text:
        if char == "(":
            depth += 1
            kept.append("(")
        elif char == ")" and depth == 0:
            kept = [""]
        elif char == ")":
            depth -= 1
        elif depth == 0:
            kept.append(char)
    return "".join(kept)


def _near(
    declared: Sequence[Declaration],
    before: Sequence[str],
    lines: Sequence[str],
    first: int,
    last: int,
) -> tuple[list[Declaration], list[Declaration]]:
    """The declarations that lines from `first` to `last` (from 0, exclusive) belong to; and with
    them the last one before and the first after, which tell the scope."""
    begun = [d for d in declared if d.line <= first]
    coming = [d for d in declared if d.line > last]
    inside = [d for d in declared if first < d.line <= last]
    above = [d for d in begun if d.line == begun[-1].line]
    below = [d for d in coming if d.line == coming[0].line]
    near = [*inside, *above, *below]
    if above and not _ENDED.search("\n".join(before[above[0].line - 1 : first])):
        inside += above
    if not _ENDED.search("\n".join(lines)):
        inside += below
    return inside, near


def _differences(
    before: Sequence[str], after: Sequence[str]
) -> Iterator[tuple[int, int, list[str]]]:
    """Where lines are not the same, but for layout: which lines of before, and those of both."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for what, i, j, k, m in matcher.get_opcodes():
        old, new = before[i:j], after[k:m]
        if what != "equal" and tokens("\n".join(old)) != tokens("\n".join(new)):
            yield i, j, [*old, *new]


def _plain_lines(text: bytes) -> list[str]:
    """The lines without comments and without blanks at their ends."""

    plain = _without_comments(text.decode(errors="replace"))
    return [" ".join(line.split()) for line in plain.split("\n")]


def _without_comments(text: str) -> str:
    """The text, each comment replaced by its ends of lines."""
    return _COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n"), text)


def _spread(
    names: set[str], texts: Mapping[str, bytes], known: _Known, listed: Collection[str]
) -> tuple[frozenset[str], frozenset[str]] | None:
    """The names with those that hand on a difference, until there are no more; and the files that
    mention them."""
    files: set[str] = set()
    known_plain: dict[str, bytes] = {}

    def plain(path: str) -> bytes:
        if path not in known_plain:
            known_plain[path] = _without_comments(texts[path].decode(errors="replace")).encode()
        return known_plain[path]

    new = names
    while new:
        if len(names) > MOST_NAMES:
            return None
        mention = re.compile(rf"\b(?:{'|'.join(sorted(new))})\b".encode())
        words = [name.encode() for name in sorted(new)]
        hit = [
            path
            for path, text in texts.items()
            if any(word in text for word in words) and mention.search(plain(path))
        ]
        files.update(hit)
        more: set[str] = set()
        for path in hit:
            more.update(_handing_on(plain(path), known.of_file.get(path, ()), mention))
            if path not in listed:
                more.update(_types(plain(path)))
        new = more - names - _KEYWORDS
        names = names | new
    return frozenset(names), frozenset(files)


def _handing_on(
    text: bytes, declared: Sequence[Declaration], mention: re.Pattern[bytes]
) -> Iterator[str]:
    """Names of macros, templates, and deduced or computed functions that mention a name."""
    yield from (m[1].decode() for m in _DEFINE.finditer(text) if mention.search(m[2]))
    lines = text.split(b"\n")
    for at, declaration in enumerate(declared):
        template = declaration.facts.get("template")
        if not template and not _HANDS_ON.search(declaration.text):
            continue
        if declaration.kind in ("macro", "enumerator", "variable", "field"):
            continue
        inside = f"{declaration.name}::"
        rest = (d.line for d in declared[at + 1 :] if not d.name.startswith(inside))
        end = next((line for line in rest if line > declaration.line), len(lines) + 1)
        if mention.search(b"\n".join(lines[declaration.line - 1 : end - 1])):
            yield from _words(declaration.name)


def _types(text: bytes) -> Iterator[str]:
    """The names of the classes and aliases of a file."""
    yield from (name.decode() for names in _TYPE.findall(text) for name in names if name)


def _plain(name: str) -> str:
    """A qualified name without the arguments of templates."""
    while _ARGUMENTS.search(name):
        name = _ARGUMENTS.sub("", name)
    return name


def _words(name: str) -> list[str]:
    """What names the thing itself, without the scopes around it."""
    return IDENTIFIER.findall(_last(_plain(name)))


def _last(name: str) -> str:
    return name.rpartition("::")[2]


def covering(graph: Includes, files: Iterable[str], candidates: Collection[str]) -> list[str]:
    """A few of the candidates, headers as one includes them, that together include all files that
    any of them does; in the order of the listed headers."""
    from torch_backend_ci.surface.extract.cpp.includes import Includes as Sets

    read = graph.edges.keys()
    sets = Sets((path, found) for path, all in graph.edges.items() for found in all & read)
    there = {h: [p for p in paths if p in read] for h, paths in graph.listed.items()}
    reached = {h: sets.closure(paths[0]) for h, paths in there.items() if paths and h in candidates}
    chosen: set[str] = set()
    covered = 0
    own = {there[header][0]: header for header in reached}
    for file in sorted(files, key=lambda path: (path not in own, path)):
        if sets.bit(file) & covered:
            continue
        fits = [header for header, closure in reached.items() if closure & sets.bit(file)]
        best = own.get(file) or min(fits, key=lambda h: reached[h].bit_count(), default=None)
        if best is not None:
            chosen.add(best)
            covered |= reached[best]
    return [header for header in graph.listed if header in chosen]
