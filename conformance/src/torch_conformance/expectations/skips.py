# SPDX-License-Identifier: BSD-3-Clause
"""A flat list of disabled upstream tests, compressed into capabilities, dtypes and patterns.

Vendors carry such lists by the ten thousand, most entries without a reason. Upstream names a test
``test_<what>_<operator>_<device>_<dtype>``. What corresponds to checks of this suite becomes rules,
from the widest down: a dtype that (nearly) no operator has, a capability, a pattern over operators.
Each test is counted under one rule, or by its class as one that corresponds to nothing here.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from torch_conformance.authoring.check import Check
from torch_conformance.expectations.patterns import Index, compress

#: Upstream's name for what is done with a sample -> topics of the OpInfo tier that do it, too.
TOPICS: dict[str, tuple[str, ...]] = {
    "compare_cpu": ("forward",),
    "correctness": ("forward",),
    "multiple_devices": ("forward",),
    "noncontiguous_samples": ("noncontiguous",),
    "out": ("out",),
    "out_warning": ("out",),
    "out_requires_grad_error": ("out",),
    "variant_consistency_eager": ("forward", "inplace"),
    "conj_view": ("math_bits",),
    "neg_view": ("math_bits",),
    "neg_conj_view": ("math_bits",),
    "errors": ("error", "misfit"),
    "fn_grad": ("gradient",),
    "inplace_grad": ("gradient",),
    "fn_gradgrad": ("gradgrad",),
    "inplace_gradgrad": ("gradgrad",),
    "parity": ("foreach",),
    "binary_op": ("foreach",),
    "unary_op": ("foreach",),
    "pointwise_op": ("foreach",),
    "outplace_with_invalid_grads": ("foreach",),
    "inplace_foreach": ("foreach",),
}

#: A word of a test's name that stands for a capability.
CAPABILITIES: dict[str, str] = {
    "sparse": "sparse",
    "autocast": "autocast",
    "pinned": "pinned_memory",
    "pin_memory": "pinned_memory",
    "memory_stats": "memory_stats",
    "event": "events",
    "stream": "streams",
}

#: The share of a dtype's operators that has to be disabled before the dtype as a whole is.
NEARLY_ALL = 0.8
#: Tests that a word has to explain before it is proposed as a capability.
FEWEST_TESTS = 3

_DECORATION = re.compile(r"\s*\(.*?\)\s*$|\s+#.*$|\[.*\]$")


@dataclass
class Rules:
    """What a list says, in this suite's words; each with the number of upstream tests behind it."""

    dtypes: Counter[str] = field(default_factory=Counter)
    capabilities: Counter[str] = field(default_factory=Counter)
    patterns: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    """Tests that correspond to no check, by class or file."""

    @property
    def tests(self) -> int:
        """How many upstream tests there were."""
        groups = (self.dtypes, self.capabilities, self.patterns, self.unknown)
        return sum(sum(group.values()) for group in groups)


@dataclass(frozen=True)
class UpstreamTest:
    """One disabled upstream test."""

    owner: str
    name: str


def read(text: str) -> list[UpstreamTest]:
    """The tests named by a file: JSON (a map with tests as keys, or a list) or a test each line.

    Understood are ``test_x (__main__.TestY)``, ``path.py::TestY::test_x``, ``TestY.test_x`` and
    ``test_x``. Raises ValueError for JSON that is neither.
    """
    return list(dict.fromkeys(_parse(line) for line in _names(text)))


def _names(text: str) -> Iterator[str]:
    if text.lstrip()[:1] in ("{", "["):
        try:
            loaded = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deep") from None
        if not all(isinstance(name, str) for name in loaded):
            raise ValueError("expected a JSON map with tests as keys, or a list of tests")
        yield from loaded
        return
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def _parse(line: str) -> UpstreamTest:
    owner = re.search(r"\((?:__main__\.)?([\w.]+)\)", line)
    bare = _DECORATION.sub("", line.strip())
    *path, name = re.split(r"::|\.(?=test_)", bare)
    return UpstreamTest(owner.group(1) if owner else path[-1] if path else "", name)


def rules(tests: Collection[UpstreamTest], checks: Collection[Check]) -> Rules:
    """The widest rules that the tests support."""
    vocabulary = _Vocabulary(checks)
    found = Rules()
    hits = {test: ids for test in tests if (ids := vocabulary.ids(test.name))}
    disabled = {id for ids in hits.values() for id in ids}
    dtypes = _dtypes(disabled, vocabulary)
    narrow = {id for id in disabled if vocabulary.dtype[id] not in dtypes}
    pattern_of = _patterns(narrow, vocabulary, dtypes)
    for ids in hits.values():
        left = [id for id in ids if id in narrow]
        if left:
            found.patterns[pattern_of[left[0]]] += 1
        else:
            found.dtypes[vocabulary.dtype[ids[0]]] += 1
    # A rule may be needed by tests that are counted under another one.
    found.patterns.update(dict.fromkeys(pattern_of.values(), 0))
    _capabilities((test for test in tests if test not in hits), found)
    return found


class _Vocabulary:
    """The checks of the OpInfo tier by the words of upstream's test names."""

    def __init__(self, checks: Collection[Check]) -> None:
        self.dtype: dict[str, str] = {}
        self.by_dtype: dict[str, set[str]] = defaultdict(set)
        self._ids: dict[tuple[str, str], list[str]] = defaultdict(list)
        operators: set[str] = set()
        for check in checks:
            topic, _, rest = check.id.removeprefix("opinfo/").partition(":")
            if check.surface != "opinfo":
                continue
            operator, _, dtype = rest.partition(":")
            operators.add(operator)
            self.dtype[check.id] = dtype
            self.by_dtype[dtype].add(check.id)
            self._ids[topic, operator].append(check.id)
        dtypes = sorted((d for d in self.by_dtype if d), key=len, reverse=True)
        whats = sorted(TOPICS, key=len, reverse=True)
        self._operators = operators
        self._test = re.compile(
            f"test_({'|'.join(whats)})_(.+?)_[a-z0-9]+(?:_({'|'.join(dtypes)}))?"
        )

    def ids(self, name: str) -> list[str]:
        """The checks to which an upstream test corresponds."""
        match = self._test.fullmatch(name.lower())
        if match is None:
            return []
        what, operator, dtype = match.groups()
        if operator not in self._operators:
            return []
        return [
            id
            for topic in TOPICS[what]
            for id in self._ids.get((topic, operator), ())
            if dtype is None or self.dtype[id] == dtype
        ]


def _dtypes(disabled: set[str], vocabulary: _Vocabulary) -> set[str]:
    """The dtypes that nearly no operator is allowed to have, in the topics that the list covers."""
    topics = {_topic(id) for id in disabled}
    found = set()
    for dtype, ids in vocabulary.by_dtype.items():
        covered = {id for id in ids if _topic(id) in topics}
        if dtype and covered and len(covered & disabled) >= NEARLY_ALL * len(covered):
            found.add(dtype)
    return found


def _topic(id: str) -> str:
    return id.partition(":")[0]


def _patterns(narrow: set[str], vocabulary: _Vocabulary, dtypes: set[str]) -> dict[str, str]:
    """The pattern for each of the ids; it may also name checks of dtypes that are disabled."""
    others = {id for id, dtype in vocabulary.dtype.items() if dtype not in dtypes} - narrow
    index = Index(narrow)
    patterns = compress(narrow, others, fewest=2)
    return {id: pattern for pattern in patterns for id in index.named(pattern)}


def _capabilities(tests: Iterable[UpstreamTest], found: Rules) -> None:
    by_word: dict[str, list[UpstreamTest]] = defaultdict(list)
    for test in tests:
        text = f"{test.owner}_{test.name}".lower()
        word = next((word for word in CAPABILITIES if word in text), None)
        if word is None:
            found.unknown[test.owner or "(no class)"] += 1
        else:
            by_word[CAPABILITIES[word]].append(test)
    for capability, named in by_word.items():
        if len(named) >= FEWEST_TESTS:
            found.capabilities[capability] += len(named)
        else:
            found.unknown.update(test.owner or "(no class)" for test in named)
