# SPDX-License-Identifier: BSD-3-Clause
"""Globs of labels: the same answers as npm's minimatch, and refusals that say why."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from node_scripts import answer

from torch_backend_ci.errors import CiError
from torch_backend_ci.label import rules
from torch_backend_ci.label.globs import Glob, compile_glob, match

HERE = Path(__file__).parent
FUZZ_CASES = int(os.environ.get("PUONE_FUZZ_CASES", "60"))  # `make fuzz` takes more

# What random globs and paths are made of: everything with a meaning, and some without.
GLOB_WORDS = [
    *"ab.AB/*?{},[]!-\\()@+^#$|~é&: 1\n😀",
    "**/",
    "/**",
    "[a-b]",
    "[!a]",
    "[^.]",
    "{a,b}",
]
GLOB_WORDS += ["a", "b", "/", "*", "{a,}", "\\*", "\\[", "\\{", "{a,{b,.}}", "1..3"]
PATH_WORDS = [*"ab.AB/-!()\\é#{},[]*?1$|\n😀", "a", "b", "/", "/", "/."]


def oracle(cases: Sequence[tuple[Sequence[str], str]]) -> list[bool]:
    """What minimatch says of (list of globs, path), all in one process."""
    number = {glob: i for i, glob in enumerate(sorted({g for globs, _ in cases for g in globs}))}
    question = {
        "globs": list(number),
        "cases": [([number[glob] for glob in globs], path) for globs, path in cases],
    }
    answers = answer("matches.mjs", question)
    assert len(answers) == len(cases)
    return list(answers)


def disagreements(cases: Sequence[tuple[Sequence[Glob], str]]) -> list[tuple[list[str], str, bool]]:
    texts = [([glob.text for glob in globs], path) for globs, path in cases]
    return [
        (globs, path, theirs)
        for (globs, path), (compiled, _), theirs in zip(texts, cases, oracle(texts), strict=True)
        if (match(compiled, path) is not None) != theirs
    ]


def words(random_: random.Random, alphabet: Sequence[str], longest: int) -> str:
    return "".join(random_.choices(alphabet, k=random_.randint(1, longest)))


def is_path(text: str) -> bool:
    return not any(part in ("", ".", "..") for part in text.split("/"))


def random_globs(random_: random.Random) -> Iterator[Glob]:
    """Globs that are taken; most random text is refused."""
    while True:
        try:
            yield compile_glob(words(random_, GLOB_WORDS, 7))
        except CiError:
            continue


def made_from(glob: Glob, random_: random.Random) -> str:
    """A path that has a chance to match."""
    fills = {"*": ["", "a", ".a", "a\n", "ab"], "?": ["a", ".", "é", "😀"], "\\": [""], "!": [""]}
    return "".join(random_.choice(fills.get(c, [c])) for c in glob.text)


@pytest.mark.fuzz
def test_random_globs_match_as_in_minimatch() -> None:
    random_ = random.Random(20_240_601)
    globs = random_globs(random_)
    cases = []
    for _ in range(30 * FUZZ_CASES):
        some = [next(globs) for _ in range(random_.choice((1, 1, 1, 2, 3)))]
        paths = [words(random_, PATH_WORDS, 6) for _ in range(6)]
        paths += [made_from(random_.choice(some), random_) for _ in range(6)]
        cases += [(some, path) for path in paths if is_path(path)]
    assert len(cases) > 10_000
    assert disagreements(cases) == []


def test_the_globs_of_the_labels_match_real_paths_as_in_minimatch() -> None:
    paths = (HERE / "repository_paths.txt").read_text().split("\n")[3:-1]
    labels = [label for label in rules.load().labels if label.paths]
    cases = [(label.paths, path) for label in labels for path in paths]
    assert len(cases) > 20_000
    assert disagreements(cases) == []


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("a/*.h", ["a/b.h", "a/.h", "a/.b.h"], ["a/b/c.h", "a/b.H", "b.h", "a/b.hpp"]),
        ("a/**", ["a/b", "a/b/c", "a/.b/c"], ["a", "ab/c"]),
        ("a/**/b", ["a/b", "a/c/b", "a/.c/d/b"], ["a/cb", "c/a/b"]),
        ("**/*.py", ["a.py", "b/.c.py", ".d/e.py"], ["a.pyi", "a.py/b"]),
        ("{a,b/{c,d}}.h", ["a.h", "b/c.h", "b/d.h"], ["b.h", "c.h", "a,b.h"]),
        ("[a-c]?[!0-9]", ["axx", "b.y"], ["d.y", "bx1", "b/y", "bx"]),
        (r"\*\[x\].h", ["*[x].h"], ["a[x].h", "*x.h"]),
        ("é?", ["éa", "éé"], ["é", "e\u0301aa"]),
    ],
)
def test_a_glob_matches(glob: str, matching: list[str], others: list[str]) -> None:
    compiled = compile_glob(glob)
    assert [path for path in matching + others if compiled.names(path)] == matching


def test_a_later_glob_takes_away_and_a_still_later_one_gives_back() -> None:
    globs = [compile_glob(text) for text in ("a/**", "!a/*.md", "a/README.md")]
    paths = ("a/x.h", "a/NEWS.md", "a/README.md")
    assert [path for path in paths if match(globs, path)] == ["a/x.h", "a/README.md"]
    by = match(globs, "a/README.md")
    assert by is not None
    assert by.text == "a/README.md"


def test_a_list_that_only_takes_away_matches_nothing() -> None:
    assert match([compile_glob("!a/**")], "b") is None


@pytest.mark.parametrize(
    ("glob", "why"),
    [
        ("", "is empty"),
        ("!", "is empty"),
        ("#a", "begins with #"),
        ("!!a", "begins with # or !!"),
        ("@(a|b)", "extended glob"),
        ("a+(b)", "extended glob"),
        ("/a", "empty directory"),
        ("a/", "empty directory"),
        ("a//b", "empty directory"),
        ("a/{,b}/c", "empty directory"),
        ("./a", "as a directory"),
        ("a/../b", "as a directory"),
        ("a**", "inside a name"),
        ("{*,a}*b", "inside a name"),
        ("{a", "braces"),
        ("a}", "braces"),
        ("{a}", "braces"),
        ("{1..3}", "braces"),
        ("${a,b}", "braces"),
        ("[a", "stray"),
        ("a]", "stray"),
        ("[]a]", "stray"),
        ("[[:alpha:]]", "stray"),
        ("[a/b]", "stray"),
        ("a\\", "stray"),
        ("a\\b", "stray"),
        ("[z-a]", "backwards"),
        ("*\\*", "begins with * or ?"),
        ("{a,b,c,d,e,f,g,h,i,j}" * 4, "more than 1000 alternatives"),
    ],
)
def test_a_glob_is_refused_that_does_not_mean_what_it_looks_like(glob: str, why: str) -> None:
    with pytest.raises(CiError, match=why.replace("*", r"\*").replace("?", r"\?")):
        compile_glob(glob)
