# SPDX-License-Identifier: BSD-3-Clause
"""Every block of code in the documents is run by a test, or says why not."""

from __future__ import annotations

import pytest
from blocks import blocks, of, problem


def test_every_block_is_quoted_run_or_says_why_not() -> None:
    found = [f"{block.where}: {said}" for block in blocks() if (said := problem(block))]
    assert not found, "\n" + "\n".join(found)


def test_there_are_blocks_of_each_kind() -> None:
    kinds = [block.note.partition(": ")[0] for block in blocks()]
    assert min(kinds.count(kind) for kind in ("quote", "run", "not run")) > 10


@pytest.mark.parametrize(
    ("document", "text", "said"),
    [
        ("docs/a.md", "```sh\nls\n```\n", "neither quoted, nor run"),
        ("docs/a.md", "```py\nprint()\n```\n", "neither quoted, nor run"),
        ("docs/a.md", "```\nls\n```\n", "neither quoted, nor run"),
        ("conformance/README.md", "```python\nprint()\n```\n", "neither quoted, nor run"),
        ("docs/a.md", "<!-- run: test/docs/none.py -->\n```sh\nls\n```\n", "there is no test"),
        ("docs/a.md", "<!-- run: test/docs/blocks.py -->\n```sh\nls\n```\n", "does not read"),
        ("docs/a.md", "<!-- not run:  -->\n```sh\nls\n```\n", "no reason"),
        ("docs/a.md", "<!-- not run: a reason -->\n\n```sh\nls\n```\n", "neither quoted, nor run"),
    ],
)
def test_a_block_that_nobody_runs_is_found(document: str, text: str, said: str) -> None:
    (block,) = of(document, text)
    assert said in (problem(block) or "")


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint()\n```\n",
        "```text\nprinted\n```\n",
        "<!-- quote: csrc/hal/hal.h#x -->\n```cpp\nint x;\n```\n",
        "<!-- not run: it waits for input -->\n```console\n$ gdb\n```\n",
    ],
)
def test_a_block_that_is_known_passes(text: str) -> None:
    (block,) = of("docs/a.md", text)
    assert problem(block) is None
