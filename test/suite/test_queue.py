# SPDX-License-Identifier: BSD-3-Clause
"""Which check a worker gets next: of its own file, of one that nobody has, or of the longest."""

from __future__ import annotations

from torch_conformance.authoring.check import Check
from torch_conformance.running.queue import Queue


def check_of(file: str, number: int) -> Check:
    return Check(f"{file}/{number}", ("REG-001",), lambda dev: None, file=file)


def queue_of(**lengths: int) -> Queue:
    queue = Queue()
    for file, length in lengths.items():
        for number in range(length):
            queue.append(check_of(file, number))
    return queue


def taken(queue: Queue, own: str, *others: str) -> str:
    return queue.take(own, others).id


def test_a_worker_alone_runs_all_in_order() -> None:
    queue = queue_of(a=2, b=2)
    own, ran = "", []
    while queue:
        check = queue.take(own, ())
        own = check.file
        ran.append(check.id)
    assert ran == ["a/0", "a/1", "b/0", "b/1"]


def test_a_worker_stays_with_its_file() -> None:
    queue = queue_of(a=2, b=2)
    assert [taken(queue, "b", "a"), taken(queue, "b", "a")] == ["b/0", "b/1"]


def test_a_worker_that_has_finished_its_file_takes_one_that_nobody_has() -> None:
    queue = queue_of(a=5, b=2, c=2)
    assert taken(queue, "finished", "a") == "b/0"


def test_where_every_file_has_a_worker_the_longest_gets_help() -> None:
    queue = queue_of(a=2, b=5, c=3)
    assert taken(queue, "finished", "a", "b", "c") == "b/0"


def test_checks_that_come_back_keep_the_place_of_their_file() -> None:
    queue = queue_of(a=1, b=1)
    queue.appendleft(queue.take("", ()))
    assert [check.id for check in queue] == ["a/0", "b/0"]


def test_its_length_is_of_all_that_wait() -> None:
    queue = queue_of(a=2, b=3)
    queue.take("a", ())
    assert len(queue) == len(list(queue)) == 4
    queue.clear()
    assert len(queue) == 0 and list(queue) == []
