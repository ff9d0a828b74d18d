# SPDX-License-Identifier: BSD-3-Clause
"""The queue: checks that wait for a worker, by the file that they are from."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from itertools import chain

from torch_conformance.authoring.check import Check


class Queue:
    """Checks in the order of their files.

    The checks of a file share what is slow to make, such as a fresh interpreter or a group of
    ranks, and each worker has to make it again. So a worker stays with its file, and takes another
    one that no other worker has; only when there is none does it help with the longest.
    """

    def __init__(self) -> None:
        # A file that has become empty stays, and with it its place.
        self._files: dict[str, deque[Check]] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Check]:
        return chain.from_iterable(self._files.values())

    def append(self, check: Check) -> None:
        """Put a check behind those of its file."""
        self._of(check).append(check)
        self._length += 1

    def appendleft(self, check: Check) -> None:
        """Put a check before those of its file."""
        self._of(check).appendleft(check)
        self._length += 1

    def take(self, own: str, of_others: Collection[str]) -> Check:
        """Remove the next check for a worker that has the file `own`; there must be one."""
        self._length -= 1
        return self._files[self._choose(own, of_others)].popleft()

    def clear(self) -> None:
        """Forget all that waits."""
        self._files.clear()
        self._length = 0

    def _of(self, check: Check) -> deque[Check]:
        return self._files.setdefault(check.file, deque())

    def _choose(self, own: str, of_others: Collection[str]) -> str:
        if self._files.get(own):
            return own
        left = [file for file, checks in self._files.items() if checks]
        free = (file for file in left if file not in of_others)
        return next(free, None) or max(left, key=lambda file: len(self._files[file]))
