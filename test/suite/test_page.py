# SPDX-License-Identifier: BSD-3-Clause
"""The page of a report is one file that loads nothing, runs nothing, and is accessible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import synthetic
from synthetic import needs, record, replaced

from torch_conformance.cli import main
from torch_conformance.results import page

VOID = {"meta", "br"}
HOSTILE = "<script>alert(1)</script>\x1b[2J</pre></details>{{ 7 * 7 }}<img src=//x onerror=y>"


class Page(HTMLParser):
    """The elements of a page; fails for one that is not closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def hostile() -> dict[str, Any]:
    """A report whose every free text is hostile."""
    return synthetic.content(
        [
            record("COPY-001", "fail", message=HOSTILE, repro=HOSTILE, fallbacks=[HOSTILE]),
            record("COPY-002", "unsupported", reason=HOSTILE),
            record(
                "COPY-003", "xfail", reason=HOSTILE, excused={"list": "xfail", "entry": HOSTILE}
            ),
        ],
        backend=HOSTILE,
        platform=HOSTILE,
        driver={HOSTILE: [HOSTILE]},
        devices=[HOSTILE],
        capabilities={HOSTILE: {"value": False, "source": "probed"}},
    )


def render(content: dict[str, Any]) -> str:
    return page.render(synthetic.document(content))


@pytest.fixture(scope="module")
def text() -> str:
    records = (
        record("COPY-001", "fail", message="2 elements differ"),
        record("EVENT-001", "unsupported", reason=needs("events")),
        record("STREAM-004", "xfail", reason="events are lost"),
        record("OPINFO-UNARY-001", "pass", 1, fallbacks=["aten::sinh"]),
    )
    return render(replaced(*records))


def test_it_shows_verdict_causes_reasons_entries_and_fallbacks(text: str) -> None:
    words = " ".join(Page(text).words)
    for expected in (
        "Some checks are not as they should be",
        "fail: N elements differ",
        "pytest conformance",
        "unsupported: needs capability 'events'",
        "events are lost",
        "aten::sinh",
        "COPY-001 is broken (1 checks, such as copy/copy_001:c0)",
        synthetic.requirements()["COPY-001"].statement,
        "What blocks Core",
        "opinfo/opinfo_unary_001",
    ):
        assert expected in words, expected


def test_a_run_without_a_level_says_why() -> None:
    content = synthetic.content()
    content["run"]["selection"]["differs_by"] = ["--tier=core"]
    assert "Not assessed: not the standard selection, but --tier=core" in render(content)


@pytest.mark.parametrize("source", ["usual", "hostile", "empty"])
def test_it_loads_nothing_and_runs_nothing(source: str, text: str) -> None:
    texts = {
        "usual": text,
        "hostile": render(hostile()),
        "empty": render(synthetic.content([])),
    }
    found = Page(texts[source])
    allowed = set(re.findall(r"<([a-z0-9]+)", page.TEMPLATE.read_text()))
    assert {tag for tag, _ in found.elements} <= allowed
    assert not allowed & {"script", "img", "link", "iframe", "form", "object", "svg"}
    for tag, attributes in found.elements:
        assert not {"src", "style", "onclick", "onerror"} & set(attributes)
        assert tag != "a" or (attributes["href"] or "").startswith("#")
    policy = next(m for m in found.named("meta") if "http-equiv" in m)
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_what_a_report_says_is_shown_and_never_interpreted() -> None:
    shown = " ".join(Page(render(hostile())).words)
    assert "<script>alert(1)</script>\ufffd[2J" in shown
    assert "{{ 7 * 7 }}" in shown


def test_it_is_accessible(text: str) -> None:
    found = Page(text)
    assert found.named("html")[0]["lang"] == "en"
    tags = [tag for tag, _ in found.elements]
    assert (tags.count("h1"), tags.count("main")) == (1, 1)
    assert tags.count("table") == tags.count("caption")
    assert tags.count("details") == tags.count("summary")
    assert all("scope" in attributes for attributes in found.named("th"))
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for a in found.named("a")} <= set(ids)


def luminance(colour: str) -> float:
    """As WCAG defines it."""
    digits = colour if len(colour) == 6 else "".join(2 * c for c in colour)
    values = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def themes() -> Iterator[dict[str, str]]:
    for block in re.findall(r":root \{(.*?)\}", page.TEMPLATE.read_text(), re.S):
        yield dict(re.findall(r"--(\w+): #(\w+)", block))


def test_text_has_enough_contrast_in_both_themes() -> None:
    assert len(list(themes())) == 2
    for colours in themes():
        for text in ("text", "good", "bad", "link"):
            for ground in ("page", "soft"):
                pair = sorted((luminance(colours[text]), luminance(colours[ground])))
                assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, (text, ground, colours)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["mixed", "failing", "excused"])
def test_twenty_thousand_checks_stay_below_three_megabytes(kind: str) -> None:
    number = 20_000
    if kind == "mixed":
        content = synthetic.many(number)
    else:
        outcome, key = {"failing": ("fail", "message"), "excused": ("unsupported", "reason")}[kind]
        texts = ({key: f"{i} " + "long text " * 40} for i in range(number))
        content = synthetic.content(
            [record("OPINFO-UNARY-001", outcome, i, **text) for i, text in enumerate(texts)]
        )
    text = render(content)
    assert len(text.encode()) < 3_000_000
    assert "20000" in text


def test_the_command_writes_it_and_ends_with_the_state_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    green = synthetic.write(tmp_path / "green.json", synthetic.content())
    assert main(["report", str(green)]) == 0
    assert (tmp_path / "green.html").read_text().startswith("<!DOCTYPE html>")
    red = synthetic.write(tmp_path / "red.json", replaced(record("COPY-001", "fail")))
    assert main(["report", str(red), "-o", str(tmp_path / "a.html")]) == 1
    assert "the run is red" in capsys.readouterr().out
    assert main(["report", str(red), "-o", str(tmp_path)]) == 4
    assert "cannot write" in capsys.readouterr().err
