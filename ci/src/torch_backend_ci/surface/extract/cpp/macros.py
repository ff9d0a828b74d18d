# SPDX-License-Identifier: BSD-3-Clause
"""Macros: their parameters and bodies as tokens, whatever the parameters are called."""

from __future__ import annotations

from typing import Any

from torch_backend_ci.surface.extract.cpp.tokens import tokens


def facts(definition: str) -> dict[str, Any]:
    """The facts of `NAME(a, b) body`, the text behind `#define`."""
    name, *words = tokens(definition)
    if not definition[len(name) :].startswith("("):
        return {"body": " ".join(words)} if words else {}
    end = words.index(")")
    parameters = [word for word in words[1:end] if word != ","]
    numbered = {word: f"${n}" for n, word in enumerate(parameters, 1) if word != "..."}
    body = " ".join(numbered.get(word, word) for word in words[end + 1 :])
    known: dict[str, Any] = {"parameters": [numbered.get(word, word) for word in parameters]}
    return {**known, "body": body} if body else known
