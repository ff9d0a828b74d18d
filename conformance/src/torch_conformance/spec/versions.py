# SPDX-License-Identifier: BSD-3-Clause
"""Versions of torch."""

from __future__ import annotations


def version_in(specifier: str, version: str) -> bool:
    """Whether a torch version satisfies a specifier such as ``>=2.11,<2.16``."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    return SpecifierSet(specifier).contains(Version(Version(version).base_version))


def specifier_error(specifier: str) -> str | None:
    """What is wrong with a specifier, or None."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(specifier)
    except InvalidSpecifier as error:
        return str(error)
    return None
