# SPDX-License-Identifier: BSD-3-Clause
"""Canonical types as text: what of one can stand for another."""

from __future__ import annotations

import re

CONST_REFERENCE = re.compile(r"const (.+?) ?&")
ENABLE_IF = re.compile(r"(?:typename )?(?:std::)?enable_if(?:_t)?<(.*)>(?:::type)?")
_DEDUCED = re.compile(r"type-parameter-\d+-\d+(?: &&)?")
_QUALIFIED = re.compile(r"(?:\w+ :: )+")
_NUMBER = re.compile(r"\b\d+\b")
_SIZE = re.compile(r"(?:typename )?.+::(?:size_type|difference_type)")
DEPENDENT = "type-parameter-"


def arguments(text: str) -> list[str]:
    """What the commas outside of brackets part."""
    parts, depth = [""], 0
    for character in text:
        depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def passes(argument: str, parameter: str) -> bool:
    """Whether what was passed as the one type can be passed as the other, and means the same.

    By value or by reference to const: an argument for the one does for the other. An optional takes
    its value, a pointer to const any pointer of its type, a value what moves into it; a parameter
    of a template takes anything.
    """
    given, taken = _value(argument), _value(parameter)
    same = given in (taken, _optional(taken)) or _to_const(given, taken)
    same = same or given == f"{parameter} &&" or _DEDUCED.fullmatch(taken) is not None
    return same or (_is_size(given) and _is_size(taken))


def gives(was: str, now: str) -> bool:
    """Whether who used one returned type can use the other as well."""
    old, new = _value(_enabled(was)), _value(_enabled(now))
    return old in (new, "void", "") or _same_template(old, new)


def unconditional(template: str) -> str:
    """Template parameters without those that only switch an overload on or off."""
    return ", ".join(p for p in arguments(template) if not re.match(r"(typename )?.*enable_if", p))


def extends(was: str, now: str) -> bool:
    """Whether the second list of template parameters only has some with defaults in addition, or
    takes any number of what it took one of."""
    old, new = arguments(was), arguments(now)
    kept = [n if o == n else n.removesuffix("...") for o, n in zip(old, new, strict=False)]
    return kept == old and all(p.endswith("=") for p in new[len(old) :])


def without_defaults(template: str) -> str:
    """Template parameters that have to be given or deduced."""
    return ", ".join(p for p in arguments(template) if not p.endswith("="))


def same_but_for_sizes(was: str, now: str) -> bool:
    """Whether two types differ only in the numbers in them: the length of an array, say."""
    return was != now and _NUMBER.sub("0", was) == _NUMBER.sub("0", now)


def unqualified(value: object) -> object:
    """A value as it is written, whatever namespaces its names are qualified with."""
    return _QUALIFIED.sub("", value) if isinstance(value, str) else value


def without_const(type_: str) -> str:
    """A type that may be assigned to."""
    return type_.removeprefix("const ")


def _is_size(type_: str) -> bool:
    """A size or a difference of sizes: they convert into each other."""
    return type_ in ("long", "unsigned long") or _SIZE.fullmatch(type_) is not None


def _to_const(argument: str, parameter: str) -> bool:
    """Whether the one is `T *` and the other `const T *`."""
    return (
        argument.endswith("*") and not argument.endswith("**") and parameter == f"const {argument}"
    )


def _value(type_: str) -> str:
    match = CONST_REFERENCE.fullmatch(type_)
    return match[1] if match else type_


def _optional(type_: str) -> str | None:
    match = re.fullmatch(r"std::optional<(.*)>", type_)
    return match[1] if match else None


def _enabled(type_: str) -> str:
    """The type that enable_if gives."""
    match = ENABLE_IF.fullmatch(type_)
    return arguments(match[1])[-1] if match else type_


def _same_template(was: str, now: str) -> bool:
    """Whether two types that depend on template parameters are made from the same template.

    Their arguments are ignored: an alias template is written out by some compilers.
    """
    both = DEPENDENT in was and DEPENDENT in now and "<" in was
    return both and was.partition("<")[0] == now.partition("<")[0]
