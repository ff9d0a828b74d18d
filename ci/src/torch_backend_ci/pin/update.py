# SPDX-License-Identifier: BSD-3-Clause
"""Which torch a pin should name next. No index is asked here, and no file written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from packaging.version import Version

from torch_backend_ci.errors import CiError
from torch_backend_ci.pin.model import PYTHONS, Pin, Source, Torch, Wheel, version
from torch_backend_ci.pin.offers import Offer, Shop


@dataclass(frozen=True)
class Wish:
    """What a person asks for; nothing, in the weekly run."""

    to: str | None = None
    reason: str | None = None  # why; going back needs one


@dataclass(frozen=True)
class Decision:
    """The pin as it should be, in words; `stuck`: only a person can mend it."""

    pin: Pin
    says: str
    stuck: bool = False


_ALLOWED: dict[Source, Callable[[Version], bool]] = {
    Source.PEOPLE: lambda version: False,
    Source.RELEASE: lambda version: not version.is_prerelease,
    Source.NIGHTLY: lambda version: version.is_devrelease,
}


def decide(pin: Pin, shop: Shop, wish: Wish = Wish()) -> Decision:
    """The pin as it should be. CiError for a wish that cannot be granted, for a wheel that is not
    the one that was pinned, and if an index that may know better did not answer."""
    if shop.unread:
        raise CiError(f"pin {pin.name}: of its indexes {shop.unread} did not answer")
    if wish.to is not None:
        wanted = _wanted(pin, shop, wish)
        if pin.torch is None or wanted.version != pin.torch.version:
            return _move(pin, wanted, shop, wish)
        return _stay(pin, pin.torch, shop, wish)
    newest = _newest(pin, shop, lambda found: pin.torch is None or found > pin.torch.public)
    if newest:
        return _move(pin, newest, shop, wish)
    if pin.torch is None:
        return Decision(pin, f"{pin.name}: still no version; --to VERSION gives it one", stuck=True)
    return _stay(pin, pin.torch, shop, wish)


def _stay(pin: Pin, torch: Torch, shop: Shop, wish: Wish) -> Decision:
    """Nothing newer: the version is kept if it is still good."""
    offer = shop.offers.get(Version(torch.version))
    wrong = _wrong(pin, offer)
    if offer and not wrong:
        wheels = _same_files(torch, offer)
        kept = replace(pin, torch=replace(torch, wheels=wheels), reason=wish.reason or pin.reason)
        words = "stays at" if kept == pin else "gets other wheels or words for"
        return Decision(kept, f"{pin.name}: {words} torch {torch.version}{_passed_over(pin, shop)}")
    older = _newest(replace(pin, source=_direction(pin)), shop, lambda v: v < torch.public)
    if older and wish.reason:
        return _move(pin, older, shop, wish)
    back = f"to go back to {older.version} give a --reason" if older else "none is older"
    return Decision(pin, f"{pin.name}: {wrong}; nothing is newer, {back}", stuck=True)


def _move(pin: Pin, offer: Offer, shop: Shop, wish: Wish) -> Decision:
    moved = replace(pin, torch=shop.torch(offer), unresolved=None, reason=wish.reason or pin.reason)
    before = pin.torch.version if pin.torch else "nothing"
    return Decision(
        moved, f"{pin.name}: torch {before} -> {offer.version}{_passed_over(moved, shop)}"
    )


def _wanted(pin: Pin, shop: Shop, wish: Wish) -> Offer:
    """The offer that a person named."""
    named = version(wish.to)
    found = [o for v, o in shop.offers.items() if named in {v, Version(v.public)}]
    if not found:
        raise CiError(f"the index {pin.index} has no torch {named}")
    offer = found[0]
    if fault := _fault(offer):
        raise CiError(fault)
    if pin.torch and Version(named.public) < pin.torch.public:
        _may_go_back(pin, pin.torch, shop, wish)
    return offer


def _may_go_back(pin: Pin, torch: Torch, shop: Shop, wish: Wish) -> None:
    if not _wrong(pin, shop.offers.get(Version(torch.version))):
        raise CiError(
            f"pin {pin.name} is at {torch.version}, which is as good as ever: a pin goes back only "
            "from a version that was yanked or removed"
        )
    if not wish.reason:
        raise CiError(f"pin {pin.name} is at {torch.version}: going back needs a --reason")


def _newest(pin: Pin, shop: Shop, fits: Callable[[Version], bool]) -> Offer | None:
    """The newest good offer of the pin's kind."""
    good = (v for v, offer in shop.offers.items() if _ALLOWED[pin.source](v) and not _fault(offer))
    found = max(_fitting(good, fits), default=None)
    return None if found is None else shop.offers[found]


def _fitting(versions: Iterable[Version], fits: Callable[[Version], bool]) -> list[Version]:
    return [v for v in versions if fits(Version(v.public))]


def _passed_over(pin: Pin, shop: Shop) -> str:
    """Why not something newer still."""
    newer = (
        offer
        for v, offer in sorted(shop.offers.items())
        if _ALLOWED[pin.source](v) and pin.torch and Version(v.public) > pin.torch.public
    )
    return "".join(f"; {_fault(offer)}" for offer in newer)


def _direction(pin: Pin) -> Source:
    """What kind of version comes before the pinned one, where people choose too."""
    return Source.RELEASE if pin.source is Source.PEOPLE else pin.source


def _wrong(pin: Pin, offer: Offer | None) -> str | None:
    """Why the pinned version cannot stay; None: it can."""
    assert pin.torch is not None
    if offer is None:
        return f"torch {pin.torch.version} is no longer on the index {pin.index}"
    return _fault(offer)


def _fault(offer: Offer) -> str | None:
    if offer.yanked is not None:
        return f"torch {offer.version} was yanked: {offer.yanked}"
    lacking = ", ".join(python for python in PYTHONS if python not in offer.pythons)
    return f"torch {offer.version} has no wheel for Python {lacking}" if lacking else None


def _same_files(torch: Torch, offer: Offer) -> tuple[Wheel, ...]:
    """The wheels as the index has them now; a file must be the one that was pinned."""
    pinned = {wheel.file: wheel.sha256 for wheel in torch.wheels}
    for wheel in offer.wheels:
        before = pinned.get(wheel.file)
        if before and wheel.sha256 != before:
            raise CiError(
                f"{wheel.file} is not what was pinned ({before}): the index says "
                f"{wheel.sha256 or 'no hash'}. Somebody must find out why"
            )
    return offer.wheels
