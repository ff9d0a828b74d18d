# SPDX-License-Identifier: BSD-3-Clause
"""What a licence may be called: an SPDX expression, which package indexes ask for."""

from __future__ import annotations

import re
from collections.abc import Callable

canonicalize: Callable[[str], str] | None
try:
    from packaging.licenses import canonicalize_license_expression as canonicalize
except ImportError:  # it has the list of licences; without it the form alone is checked
    canonicalize = None

NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*(?: (?:AND|OR|WITH) [A-Za-z0-9][A-Za-z0-9.+-]*)*")


class BadLicense(ValueError):
    """A text that is no SPDX expression."""


def expression(text: str) -> str:
    """The SPDX expression, as SPDX spells its names. Raises BadLicense."""
    try:
        if canonicalize is not None:
            return str(canonicalize(text))
        balanced = text.count("(") == text.count(")")
        if balanced and NAMES.fullmatch(re.sub(r"[()]", "", text)) is not None:
            return text
    except ValueError:
        pass
    raise BadLicense(
        f"{text!r} is not an SPDX expression, such as Apache-2.0 or MIT "
        "(https://spdx.org/licenses); a licence of your own is LicenseRef-NAME, such as "
        "LicenseRef-Proprietary"
    )
