# SPDX-License-Identifier: BSD-3-Clause
"""What the fuzz tests share: how many cases, and how a good file becomes a bad one.

`make test` runs the same few cases everywhere. `make fuzz` runs many more (PUONE_FUZZ_CASES), and
others each time: it prints the seed, `FUZZ_SEED=N` repeats them, `.hypothesis` keeps the failures.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

CASES = int(os.environ.get("PUONE_FUZZ_CASES", "60"))
RANDOM = "PUONE_FUZZ_CASES" in os.environ

fuzzed = settings(
    max_examples=CASES,
    deadline=None,
    # The same cases on every machine, unless new ones are asked for.
    derandomize=not RANDOM,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples") if RANDOM else None,
    print_blob=RANDOM,
    suppress_health_check=[
        # Reports have thousands of values, and the machine may be slow.
        HealthCheck.too_slow,
        # tmp_path: every case writes its files anew.
        HealthCheck.function_scoped_fixture,
    ],
)

#: Pieces of YAML and JSON that readers stumble over.
_TAGS = "&a |*a|<<: *a|? |!!python/object:os.system |!!binary x|!!set |!!int z|---\n|...|%YAML 9\n"
_MARKS = "{ } [ ] ' \" \\ # ~ * : - , \t \0 \x85 \ufeff \u2028 a*b ééé"
_NUMBERS = '1e999 0x_ 1_0:99 2027-13-01 2027-01-01T10:00 "\\uD800" "\\UFFFFFFFF"'
SHARDS = st.sampled_from(
    [
        *_TAGS.split("|"),
        *_MARKS.split(" "),
        *_NUMBERS.split(" "),
        *("\n", "|\n", ">\n", '{"a": 1, "a": 2}', "9" * 400, "[" * 3000, "{a: " * 500),
    ]
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """A good text with a few places cut out, doubled or replaced; now and then not even text."""
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 40)))
        kept = draw(st.sampled_from(["", text[begin:end] * 2]))
        text = text[:begin] + kept + draw(SHARDS | st.text(max_size=8)) + text[end:]
    data = text.encode("utf-8", "surrogatepass")
    return draw(st.just(data) | st.binary(max_size=64).map(lambda noise: data[:200] + noise))


#: Whatever a YAML or JSON file can hold in the place of a value.
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates()
    | st.datetimes()
    | st.text(max_size=12)
    | st.sampled_from(["*", "a*b", "copy/*", "fail", "pass", "2027-01-31", "true", "[", ">=2.11"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
