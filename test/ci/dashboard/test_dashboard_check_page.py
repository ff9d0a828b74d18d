# SPDX-License-Identifier: BSD-3-Clause
"""The page of a check, in a real browser: what the document of its topic tells is shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dashboard_sample import BLOCKED, BROKEN, CRASHED, RENAMED, SLOWED
from dashboard_site import Seen, opened
from playwright.sync_api import Browser, expect

from torch_backend_ci.dashboard import paths


@pytest.fixture
def seen(chromium: Browser, served: str) -> Iterator[Seen]:
    """A window in which nothing may go wrong."""
    with opened(chromium, served) as made:
        yield made
        assert made.problems == []


def row(seen: Seen, backend: str, line: str) -> str:
    """What the table says of a series."""
    found = seen.page.locator("#rows tr", has_text=f"{backend} {line}")
    return " ".join(found.inner_text().split())


def test_a_mended_check_tells_since_when_what_it_was_and_what_it_said(seen: Seen) -> None:
    seen.go(paths.of_check(BROKEN))
    expect(seen.page.locator("main h1")).to_have_text(BROKEN)
    expect(seen.page).to_have_title(f"{BROKEN} · PyTorch conformance")
    assert "puone-sim 2.13 pass 2026-11-20, was fail compare" in row(seen, "puone-sim", "2.13")
    expect(seen.page.locator("#before")).to_contain_text("puone-sim 2.13 (2026-11-19)")
    expect(seen.page.locator("#before")).to_contain_text("3 of 8 elements differ")
    expect(seen.page.locator("#requirements a")).to_have_text("MEM-003")
    strip = seen.page.locator("#rows tr", has_text="puone-sim 2.13").locator("svg.strip")
    said = "Now pass, 1 run: 2026-11-20; before that fail and 1 more changes"
    expect(strip).to_have_attribute("aria-label", said)
    seen.page.locator("#rows a", has_text="compare").click()
    expect(seen.page.locator("#summary")).to_be_visible()


def test_a_check_that_vanished_is_said_to_be_gone(seen: Seen) -> None:
    seen.go(paths.of_check(RENAMED))
    assert "gone 2026-11-19, was pass compare" in row(seen, "puone-sim", "2.13")
    expect(seen.page.locator("#counts")).to_contain_text("gone in 3")


def test_a_check_that_never_changed_is_said_to_have_been_so_always(seen: Seen) -> None:
    seen.go(paths.of_check(BROKEN))
    assert "pass 2026-11-17, always" in row(seen, "cpu", "2.13")


def test_what_fell_back_to_the_cpu_names_the_operators(seen: Seen) -> None:
    seen.go(paths.of_check(SLOWED))
    expect(seen.page.locator("#said")).to_contain_text("By CPU fallback: aten::add.out")


@pytest.mark.parametrize("id", [BROKEN, SLOWED, BLOCKED, CRASHED])
def test_hostile_texts_are_text(id: str, seen: Seen) -> None:
    seen.go(paths.of_check(id))
    main = seen.page.locator("main")
    expect(main).to_contain_text("alert(1)")
    expect(main).to_contain_text("\\u202egnp.exe\\x1b[31m")
    assert seen.page.locator("main img, main script").count() == 0


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("memory/mem_003:nothing", "no complete run has had the check memory/mem_003:nothing"),
        ("../index", "../index is not the id of a check"),
        ("", "nothing is not the id of a check"),
    ],
)
def test_what_is_no_check_is_told(id: str, said: str, seen: Seen) -> None:
    seen.page.goto(f"{seen.base}{paths.of_check(id)}")
    expect(seen.page.locator("#error")).to_contain_text(said)
    expect(seen.page.locator("#check")).to_be_hidden()
