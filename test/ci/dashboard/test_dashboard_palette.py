# SPDX-License-Identifier: BSD-3-Clause
"""The colours of the pages, computed: they can be read, and told apart by all who see."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from torch_backend_ci.dashboard import render, words

STATIC = Path(render.__file__).parent / "static"


TOKEN = re.compile(r"--([a-z]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
TONES = ("good", "bad", "warn", "held", "info", "mute")
GROUNDS = ("page", "card", "soft")

Colour = tuple[float, float, float]


def palettes() -> dict[str, dict[str, Colour]]:
    found = TOKEN.findall((STATIC / "style.css").read_text(encoding="utf-8"))
    return {
        theme: {name: linear(values[place]) for name, *values in found}
        for place, theme in enumerate(("light", "dark"))
    }


def linear(code: str) -> Colour:
    """A colour of sRGB in linear light."""
    parts = (int(code[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return red, green, blue


def luminance(colour: Colour) -> float:
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), colour, strict=True))


def contrast(one: Colour, other: Colour) -> float:
    """By WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_and_every_tone_can_be_read_on_every_ground(theme: str) -> None:
    palette = palettes()[theme]
    for name in ("text", "dim", "link", *TONES):
        for ground in GROUNDS:
            assert contrast(palette[name], palette[ground]) >= 4.5, (name, ground)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_edge_of_what_can_be_operated_is_seen(theme: str) -> None:
    palette = palettes()[theme]
    for ground in ("page", "card"):
        assert contrast(palette["edge"], palette[ground]) >= 3, ground


# What is left of red, green and blue for those who lack a kind of cones (Machado, Oliveira and
# Fernandes 2009, severity 1.0; rows of a matrix on linear light).
LACKING = {
    "red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def seen(colour: Colour, lacking: str) -> Colour:
    red, green, blue = (
        min(max(sum(w * c for w, c in zip(row, colour, strict=True)), 0), 1)
        for row in LACKING[lacking]
    )
    return red, green, blue


def lab(colour: Colour) -> Colour:
    """In CIELAB, D65: there, a distance of 2 is just seen."""
    rows = (
        (0.4124564, 0.3575761, 0.1804375),
        (0.2126729, 0.7151522, 0.0721750),
        (0.0193339, 0.1191920, 0.9503041),
    )
    xyz = [sum(w * c for w, c in zip(row, colour, strict=True)) for row in rows]
    x, y, z = (
        v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116
        for v in (part / white for part, white in zip(xyz, (0.95047, 1, 1.08883), strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("lacking", LACKING)
def test_good_and_bad_differ_without_a_kind_of_cones(theme: str, lacking: str) -> None:
    palette = palettes()[theme]
    good, bad = (lab(seen(palette[name], lacking)) for name in ("good", "bad"))
    assert sum((a - b) ** 2 for a, b in zip(good, bad, strict=True)) ** 0.5 > 20


def test_no_two_outcomes_have_the_same_shape() -> None:
    drawn = re.compile(r"<symbol [^>]*>(.*)</symbol>")
    shapes = {name: drawn.findall(symbol) for name, symbol in render.glyphs().items()}
    assert words.OUTCOMES.keys() | words.EVIDENCE.keys() | words.KINDS.keys() <= shapes.keys()
    assert {standing.glyph for standing in words.STANDINGS.values()} <= shapes.keys()
    assert [pair for pair in combinations(shapes, 2) if shapes[pair[0]] == shapes[pair[1]]] == []


def test_styles_load_nothing() -> None:
    for file in STATIC.glob("*.css"):
        assert not re.search(r"url\(|@import", file.read_text(encoding="utf-8")), file
