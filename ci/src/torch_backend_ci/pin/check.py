# SPDX-License-Identifier: BSD-3-Clause
"""Whether a pin still says the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from packaging.version import Version

from torch_backend_ci.errors import CiError
from torch_backend_ci.pin import mirrored
from torch_backend_ci.pin.changes import Read
from torch_backend_ci.pin.model import Pin, Torch
from torch_backend_ci.pin.offers import Offer, Shop


@dataclass(frozen=True)
class Problem:
    """What is wrong with a pin, and what helps."""

    pin: str
    kind: str
    text: str


Upstream = Callable[[str], bool]  # True if PyTorch's repository has this commit


def problems(pin: Pin, shop: Shop, upstream: Upstream | None) -> list[Problem]:
    """What the index and the upstream repository say against a pin; a pin without a version can
    have no problem. CiError if the index cannot answer."""
    if pin.torch is None:
        return []
    torch = pin.torch
    offer = shop.offers.get(Version(torch.version))
    if offer is None:
        if shop.unread:
            raise CiError(f"whether there is a torch {torch.version}: {shop.unread} did not answer")
        found = [("removed", f"torch {torch.version} is no longer on the index {pin.index}")]
    else:
        found = [*_withdrawn(offer), *_of_wheels(torch, offer), *_of_commit(torch, offer, shop)]
    if upstream and not upstream(torch.git_version):
        found.append(("orphaned", f"upstream has no commit {torch.git_version} (any more)"))
    return [Problem(pin.name, kind, text) for kind, text in found]


def of_mirror(pin: Pin, read: Read) -> list[Problem]:
    """Whether the file that repeats the version, if there is one, does so."""
    file = mirrored.FILES.get(pin.name)
    if file is None or pin.torch is None:
        return []
    says = mirrored.version_in(read(file), file)
    if says == str(pin.torch.public):
        return []
    cure = f"torch-backend-ci pin update {pin.name}"
    words = f"{file} says torch {says}, the pin {pin.torch.version}: {cure}"
    return [Problem(pin.name, "requirements", words)]


def _withdrawn(offer: Offer) -> Iterator[tuple[str, str]]:
    if offer.yanked is not None:
        yield "yanked", f"torch {offer.version} was yanked: {offer.yanked}"


def _of_wheels(torch: Torch, offer: Offer) -> Iterator[tuple[str, str]]:
    offered = {wheel.file: wheel for wheel in offer.wheels}
    for pinned in torch.wheels:
        found = offered.get(pinned.file)
        if found is None:
            yield "wheel_removed", f"{pinned.file} is no longer on the index"
        elif found.sha256 is None and pinned.sha256:
            yield "no_hash", f"{pinned.file}: the index gives no hash to compare with"
        elif found.sha256 and pinned.sha256 is None:
            yield "unhashed", f"{pinned.file}: the index has a hash of it now, the pin has none"
        elif found.sha256 != pinned.sha256:
            yield (
                "hash",
                f"{pinned.file} was exchanged: the pin says {pinned.sha256}, the index "
                f"{found.sha256}. Do not install it before somebody has found out why",
            )


def _of_commit(torch: Torch, offer: Offer, shop: Shop) -> Iterator[tuple[str, str]]:
    commit = shop.commit(offer)
    if commit != torch.git_version:
        yield "commit", f"the wheel was built from {commit}, the pin says {torch.git_version}"
