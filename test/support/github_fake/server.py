# SPDX-License-Identifier: BSD-3-Clause
"""The fake itself: checks what comes, hands it over to the handlers, and fails when told to."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from werkzeug.wrappers import Request

from github_fake import actions, checks, git_data, hosts, issues, pulls, repositories
from github_fake.description import Operation, load
from github_fake.faults import Failing, Fault, Faults, failure
from github_fake.handling import ROUTES, Call, Listing, Reply
from github_fake.hosts import Closed, Sent
from github_fake.payloads import payload
from github_fake.people import Person
from github_fake.render import Render
from github_fake.replies import moved, named, paged, refused
from github_fake.seen import seen
from github_fake.shapes import Shapes
from github_fake.tokens import Token
from github_fake.world import BOT, Files, Issue, Refusal, Repository, World

__all__ = ["GitHubFake", "Record", "Token"]
HANDLERS = (actions, checks, git_data, issues, pulls, repositories)  # importing them fills ROUTES


@dataclass(frozen=True)
class Record:
    """A call as it came, and how it ended."""

    operation: str
    method: str
    path: str
    body: Any
    actor: str | None
    status: int | None  # None: the connection was closed

    @property
    def writes(self) -> bool:
        """Whether it may have changed anything."""
        return self.method != "GET"


@dataclass
class _Kill:
    pid: int
    at: int  # the number of a call, from 1
    before: bool


@dataclass
class GitHubFake(Failing):
    """One GitHub. `with` it, and it listens."""

    world: World = field(default_factory=World)
    tokens: dict[str, Token] = field(default_factory=dict)
    calls: list[Record] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    url: str = ""  # of the API
    storage_url: str = ""  # of the host that downloads are sent to
    fork_commits_list_pulls: bool = False  # GitHub does not promise it

    def __post_init__(self) -> None:
        self._description = load()
        self._shapes = Shapes(self._description)
        self._lock = threading.RLock()
        self._hooks: list[tuple[str, bool, Callable[[], object]]] = []
        self._kill: _Kill | None = None
        self._applied = 0
        self._company: tuple[int, Callable[[], object]] | None = None
        self._arrived = 0
        self.repository = self.world.add_repository("octo-org/puone")
        self.token = self.new_token()

    # --- what tests set up

    def new_token(
        self,
        permissions: Mapping[str, str] | None = None,
        *,
        actor: str = BOT,
        repository: str | None = "octo-org/puone",
        expired: bool = False,
    ) -> str:
        """A token's text; no permissions named means all of them."""
        text = "ghs_" + hashlib.sha256(f"{len(self.tokens)}".encode()).hexdigest()[:36]
        self.tokens[text] = Token(text, actor, permissions, repository, expired)
        return text

    def person(self, login: str, repository: Repository | None = None) -> Person:
        """Somebody who acts between our calls."""
        return Person(self.world_now, login, (repository or self.repository).full_name)

    def world_now(self) -> World:
        """The world, which `restore` replaces."""
        return self.world

    def open_pull(
        self,
        files: Files,
        *,
        title: str = "Change something",
        body: str | None = None,
        author: str = "contributor",
        branch: str = "topic",
        fork: bool = True,
        repository: Repository | None = None,
    ) -> Issue:
        """A pull request that changes these files, by default from its author's fork."""
        base = repository or self.repository
        head = base
        if fork:
            name = f"{author}/{base.name}"
            head = self.world.repositories.get(name.lower()) or self.world.add_repository(
                name, fork_of=base.full_name
            )
        main = base.refs[f"refs/heads/{base.default_branch}"]
        self.world.push(head, files, branch, message=title, author=author, onto=main)
        return self.world.open_pull(base, head, branch, author, title, body)

    def before(self, operation: str, action: Callable[[], object]) -> None:
        """Somebody is faster: once, just before the next such call is applied."""
        self._hooks.append((operation, True, action))

    def after(self, operation: str, action: Callable[[], object]) -> None:
        """Once, just after the next such call was applied."""
        self._hooks.append((operation, False, action))

    def kill(self, pid: int, at: int, *, before: bool = False) -> None:
        """SIGKILL to a process right after (or before) its `at`-th call from now is applied."""
        self._applied, self._kill = 0, _Kill(pid, at, before)

    def meanwhile(self, at: int, action: Callable[[], object]) -> None:
        """Just before the `at`-th call from now arrives; the action may make calls itself."""
        self._arrived, self._company = 0, (at, action)

    # --- going back, comparing

    def checkpoint(self) -> World:
        """To restore later."""
        with self._lock:
            return copy.deepcopy(self.world)

    def restore(self, world: World) -> None:
        """Back to a checkpoint, which stays good."""
        with self._lock:
            self.world = copy.deepcopy(world)
            self.repository = self.world.repository(self.repository.full_name)
            self.calls.clear()
            self._kill = self._company = None

    def state(self) -> dict[str, Any]:
        """What people see: without numbers and times that differ from run to run."""
        with self._lock:
            every = self.world.repositories.items()
            return copy.deepcopy({name: seen(self.world, one) for name, one in every})

    def check(self) -> None:
        """Fails if any request or answer broke GitHub's description."""
        assert not self.violations, "\n".join(self.violations)

    # --- serving

    def __enter__(self) -> GitHubFake:
        self._hosts = hosts.take(self)
        self.url, self.storage_url = self._hosts.url, self._hosts.storage_url
        return self

    def __exit__(self, *exception: object) -> None:
        hosts.give_back(self._hosts)

    def payload(
        self, event: str, action: str | None = None, *, number: int | None = None, **given: Any
    ) -> dict[str, Any]:
        """What a workflow finds in GITHUB_EVENT_PATH: see github_fake.payloads."""
        with self._lock:
            render = Render(self.world, self._shapes, self.url)
            return payload(render, self.repository, event, action, number, given)

    def answer(self, request: Request) -> Sent:
        """One call of the API."""
        self._let_others_act()
        where = request.environ["REQUEST_URI"]
        text = request.get_data()
        body = json.loads(text) if text else None
        found = self._description.find(request.method, urlsplit(where).path)
        if found is None:
            self._violate(f"{request.method} {where}", ["GitHub describes no such operation"])
            return Sent(failure(404))
        operation, parameters = found
        query = request.query_string.decode()
        wrong = self._description.wrong_request(operation, parameters, query, body)
        self._violate(f"{operation.id} ({request.method} {where})", wrong)
        with self._lock:
            fault = self.faults.take(operation.id) or Fault()
            self._hook(operation, before=True)
            self._strike(before=True)
            reply = self._reply(fault, operation, parameters, request, body)
            self._hook(operation, before=False)
            self._record(operation, request, body, None if fault.closes else reply.status)
            self._strike(before=False)
        return fault.sent(reply)

    def download(self, request: Request) -> Sent:
        """A file of the storage. The operation of its faults is called "download"."""
        if "Authorization" in request.headers:
            self._violate(request.path, ["a token was sent to the host of downloads"])
            return Sent(Reply(403, b"<Error/>"))
        with self._lock:
            fault = self.faults.take("download") or Fault()
            reply = fault.instead or self._stored(request)
            if fault.rewrite:
                fault.rewrite(reply)
        return fault.sent(reply)

    def _stored(self, request: Request) -> Reply:
        signed = request.args.get("sig") == "s3cret"
        number = int(request.path.rpartition("/")[2] or 0) if signed else 0
        for repository in self.world.repositories.values():
            if number in repository.artifacts:
                data = repository.artifacts[number].data
                return Reply(200, data, {"content-type": "application/zip"})
        return Reply(404, b"<Error/>")

    def _reply(
        self,
        fault: Fault,
        operation: Operation,
        parameters: Mapping[str, str],
        request: Request,
        body: Any,
    ) -> Reply:
        reply = fault.instead
        if reply is None or fault.applied:
            true = self._apply(operation, parameters, request, body)
            reply = reply or true
        if fault.rewrite:
            fault.rewrite(reply)
        return reply

    def _record(
        self, operation: Operation, request: Request, body: Any, status: int | None
    ) -> None:
        token, where = self._token(request), request.environ["REQUEST_URI"]
        actor = token.actor if token else None
        self.calls.append(Record(operation.id, request.method, where, body, actor, status))

    def _apply(
        self, operation: Operation, parameters: Mapping[str, str], request: Request, body: Any
    ) -> Reply:
        try:
            reply = self._handle(operation, parameters, request, body)
        except Refusal as refusal:
            return refused(refusal)
        said = f"{operation.id}: the fake's answer"
        self._violate(said, self._description.wrong_response(operation, reply.status, reply.body))
        return reply

    def _handle(
        self, operation: Operation, parameters: Mapping[str, str], request: Request, body: Any
    ) -> Reply:
        token, name = self._token(request), named(parameters)
        if name in self.world.moved:
            return moved(self.world, name, request, self.url)
        if token is None or token.expired:
            given = "Authorization" in request.headers
            raise Refusal(401, "Bad credentials" if given else "Requires authentication")
        route = ROUTES.get(operation.id)
        if route is None:
            self._violate(operation.id, ["the fake has no handler for it"])
            raise Refusal(501, "Not implemented by the fake")
        if not token.may(name, route.needs):
            raise Refusal(403, "Resource not accessible by integration", route.needs)
        render = Render(self.world, self._shapes, self.url)
        call = Call(
            self.world,
            render,
            parameters,
            request.args,
            body,
            token.actor,
            self.storage_url,
            self.fork_commits_list_pulls,
        )
        answer = route.handler(call)
        if isinstance(answer, Listing):
            return paged(answer, request, self.url)
        return answer if isinstance(answer, Reply) else Reply(200, answer)

    def _token(self, request: Request) -> Token | None:
        given = request.headers.get("Authorization", "")
        return self.tokens.get(re.sub(r"^(token|Bearer) ", "", given))

    def _violate(self, said: str, problems: Sequence[str] | Iterator[str]) -> None:
        self.violations += [f"{said}: {problem}" for problem in problems]

    def _let_others_act(self) -> None:
        with self._lock:
            self._arrived += 1
            if self._company is None or self._company[0] != self._arrived:
                return
            action, self._company = self._company[1], None
        action()  # its calls need the lock

    def _hook(self, operation: Operation, *, before: bool) -> None:
        for hook in [h for h in self._hooks if h[:2] == (operation.id, before)][:1]:
            self._hooks.remove(hook)
            hook[2]()

    def _strike(self, *, before: bool) -> None:
        self._applied += before
        plan = self._kill
        if plan and (plan.at, plan.before) == (self._applied, before):
            self._kill = None
            os.kill(plan.pid, signal.SIGKILL)
            raise Closed
