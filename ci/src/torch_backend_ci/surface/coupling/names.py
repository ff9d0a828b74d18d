# SPDX-License-Identifier: BSD-3-Clause
"""Files that are not generic, by their name (RFC-0039, "inter-file level")."""

from __future__ import annotations

from fnmatch import fnmatchcase

from torch_backend_ci.surface.coupling.rules import Hit, Rules


def other_vendors(file: str, rules: Rules) -> bool:
    """Whether a file is in another vendor's directory (and not in this one's)."""
    folders = file.split("/")[:-1]
    return not rules.vendor_folders.isdisjoint(folders) and not any(
        rules.vendor.names(folder) for folder in folders
    )


def whole_file(file: str, rules: Rules) -> Hit | None:
    """The hit of a file that is the vendor's; None for a generic one."""
    vendor = rules.vendor
    folder, _, base = file.rpartition("/")
    if part := next((part for part in folder.split("/") if vendor.names(part)), None):
        return Hit("file.directory", file, 0, part)
    if vendor.names(base):
        return Hit("file.name", file, 0, base)
    if suffix := next((s for s in vendor.suffixes if base.endswith(s)), None):
        return Hit("file.suffix", file, 0, suffix)
    installed = file.removeprefix("torch/include/")
    if pattern := next((p for p in vendor.listed if fnmatchcase(installed, p)), None):
        return Hit("file.listed", file, 0, pattern)
    return None
