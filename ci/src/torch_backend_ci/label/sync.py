# SPDX-License-Identifier: BSD-3-Clause
"""The repository's labels as labels.yml defines them; labels that it does not know are left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from torch_backend_ci.github import labels
from torch_backend_ci.github.access import Repository
from torch_backend_ci.github.change import Change
from torch_backend_ci.label.rules import Label


def changes(repo: Repository, wanted: Iterable[Label]) -> Iterator[Change]:
    """What makes each of the labels exist with its colour and description."""
    known = {label.name.lower(): label for label in repo.get_labels()}
    for label in wanted:
        there = known.get(label.name.lower())
        if there is None:
            yield labels.define(repo, _definition(label))
        elif labels.definition(there) != _definition(label):
            yield labels.redefine(there, _definition(label))


def missing(repo: Repository, wanted: Iterable[Label], names: Collection[str]) -> Iterator[Change]:
    """What makes those of the labels exist that are about to be used."""
    known = {label.name.lower() for label in repo.get_labels()}
    for label in wanted:
        if label.name in names and label.name.lower() not in known:
            yield labels.define(repo, _definition(label))


def _definition(label: Label) -> labels.Definition:
    return labels.Definition(label.name, label.colour, label.description)
