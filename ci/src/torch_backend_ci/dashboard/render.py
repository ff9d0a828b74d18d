# SPDX-License-Identifier: BSD-3-Clause
"""From a page to bytes. Whatever a report says is text: escaped, and shown where it would hide."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2

from torch_backend_ci import document
from torch_backend_ci.dashboard import paths, pictures, words
from torch_backend_ci.dashboard.page import File, Page
from torch_backend_ci.github.markdown import visible
from torch_conformance.spec.outcome import TRAITS

TEMPLATES = Path(__file__).parent / "templates"
SHAPES = Path(__file__).parent / "glyphs.svg"
#: No script and no style but the site's own files, and nothing from elsewhere.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'"
)
#: Where a template wants the shapes that the page uses.
GLYPHS = "<!-- glyphs -->"
_USED = re.compile(r'href="#g-(\w+)"')
_SYMBOL = re.compile(r'<symbol id="g-(\w+)".*?</symbol>', re.DOTALL)
_PLAIN = re.compile(r"[\t\n -~]*")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def render(page: Page | File, notice: str | None = None) -> Iterator[File]:
    """The files that a page becomes; `notice` is what every page of the site says.

    ValueError if the page's path leads anywhere but into the site.
    """
    if isinstance(page, File):
        _checked(page.path)
        yield page
        return
    template = environment().get_template(page.template)
    html = template.render(
        page.context,
        title=page.title,
        path=page.path,
        root=paths.root(page.path),
        api=page.data is not None,
        notice=notice,
    )
    yield File(_checked(page.path), _with_glyphs(html).encode())
    if page.data is not None:
        yield File(_checked(paths.api(page.path)), encode(page.data))


def _with_glyphs(html: str) -> str:
    """The page with the shapes that it uses: all of them would be a third of most pages."""
    shapes = glyphs()
    used = "\n".join(shapes[name] for name in sorted(set(_USED.findall(html))))
    sprite = f'<svg class="unseen" aria-hidden="true" focusable="false">\n{used}\n</svg>'
    return html.replace(GLYPHS, sprite if used else "", 1)


@functools.cache
def glyphs() -> dict[str, str]:
    """The shapes of outcomes and those of glyphs.svg by their names."""
    text = SHAPES.read_text(encoding="utf-8")
    of_outcomes = {
        outcome.value: f'<symbol id="g-{outcome}" viewBox="0 0 16 16">{traits.glyph}</symbol>'
        for outcome, traits in TRAITS.items()
    }
    return of_outcomes | {found[1]: found[0] for found in _SYMBOL.finditer(text)}


def encode(data: Any) -> bytes:
    """As JSON for programs: equal data gives equal bytes."""
    return json.dumps(document.plain(data), sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _checked(path: str) -> str:
    if all(map(_PART.fullmatch, path.split("/"))):
        return path
    raise ValueError(f"{path!r} is not a path for a file of the site")


@functools.cache
def environment() -> jinja2.Environment:
    """The templates, with the filters below; `paths` and `policy` are theirs to use."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {
        "paths": paths,
        "pictures": pictures,
        "policy": POLICY,
        "told": told,
        "words": words,
    }
    made.filters |= {
        "number": number,
        "percent": percent,
        "seconds": seconds,
        "day": day,
        "moment": moment,
        "plural": plural,
        "short": short,
    }
    return made


@functools.lru_cache(maxsize=1024)
def told(macro: str, value: str | None, word: bool = True) -> Any:
    """What a macro of a glyph makes of a value: `told("outcome", "pass")`.

    There are millions of them in a site, and few different ones: each is rendered once.
    """
    return getattr(environment().get_template("macros.html").module, macro)(value, word)


def _shown(value: Any) -> Any:
    """What a template outputs: never `None`, and nothing invisible or that turns the reading."""
    if value is None:
        raise jinja2.UndefinedError("a template outputs None; say what is shown instead")
    if type(value) is str and not _PLAIN.fullmatch(value):
        return visible(value, keep="\t\n")
    return value


def number(value: int) -> str:
    """`12,345`."""
    return f"{value:,}"


def percent(part: int, whole: int) -> str:
    """`99.9 %`, never rounded to 100 % or 0 %, which mean all and none."""
    if not whole or part in (0, whole):
        return "-" if not whole else "100 %" if part else "0 %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def seconds(value: float) -> str:
    """A duration: `0.4 ms`, `12 ms`, `3.1 s`, `4 min 10 s`, `2 h 5 min`."""
    if value < 0.9995:
        return f"{value * 1000:.2g} ms" if value < 0.00995 else f"{value * 1000:.0f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def day(value: datetime) -> str:
    """`2026-11-22`, in UTC as all times of the model are."""
    return value.strftime("%Y-%m-%d")


def moment(value: datetime) -> str:
    """`2026-11-22 08:33 UTC`."""
    return value.strftime("%Y-%m-%d %H:%M UTC")


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 check`, `2 checks`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def short(text: str, length: int = 200) -> str:
    """The first line, cut to a length."""
    line = text.partition("\n")[0]
    return line if len(line) <= length else line[: length - 1] + "…"
