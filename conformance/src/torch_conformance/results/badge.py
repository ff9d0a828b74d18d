# SPDX-License-Identifier: BSD-3-Clause
"""The level of a backend as a badge."""

from __future__ import annotations

from html import escape
from typing import Any

from torch_conformance.results.levels import Verdict

LABEL = "PyTorch conformance"
# All have a contrast of more than 4.5 to the white text on them.
GREY, GREEN, DULL = "#444c56", "#1a7037", "#636c76"
# Width of a character of the 11 px sans-serif fonts that are likely, and room at both ends.
CHARACTER, MARGIN, HEIGHT = 6.6, 10, 20


def endpoint(torch: str, verdict: Verdict, remark: str = "") -> dict[str, Any]:
    """What shields.io shows as a badge; a remark (`3 days old`) takes its colour."""
    message, color = _message(torch, verdict, remark), _color(verdict, remark)
    return {"schemaVersion": 1, "label": LABEL, "message": message, "color": color.lstrip("#")}


def svg(backend: str, torch: str, verdict: Verdict, remark: str = "") -> str:
    """A picture that needs no server and has a text for those who do not see it."""
    message = _message(torch, verdict, remark)
    left, right = (round(len(text) * CHARACTER + 2 * MARGIN) for text in (LABEL, message))
    title = escape(f"{LABEL} of {backend}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" '
        f'role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n"
        f'<clipPath id="r"><rect width="{left + right}" height="{HEIGHT}" rx="3"/></clipPath>\n'
        f'<g clip-path="url(#r)">\n'
        f'<rect width="{left}" height="{HEIGHT}" fill="{GREY}"/>\n'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{_color(verdict, remark)}"/>\n'
        "</g>\n"
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        'text-anchor="middle">\n'
        f"{_text(LABEL, left / 2, left - MARGIN)}"
        f"{_text(message, left + right / 2, right - MARGIN)}"
        "</g>\n</svg>\n"
    )


def _message(torch: str, verdict: Verdict, remark: str) -> str:
    """The level, and the torch it is for: with another one it has to be shown again."""
    release = torch.partition("+")[0]
    return ", ".join(filter(None, (verdict.title.lower(), f"torch {release}", remark)))


def _color(verdict: Verdict, remark: str) -> str:
    return GREEN if verdict.name and not remark else DULL


def _text(text: str, middle: float, length: float) -> str:
    return f'<text x="{middle:g}" y="14" textLength="{length:g}">{escape(text)}</text>\n'
