# SPDX-License-Identifier: BSD-3-Clause
"""The fake itself: listens, checks, hands over to the handlers, and fails when it is told to."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler
from werkzeug.wrappers import Request, Response

from github_fake import actions, checks, git_data, issues, pulls, repositories
from github_fake.description import Operation, load
from github_fake.faults import Fault, Faults, failure, primary_limit, secondary_limit
from github_fake.handling import ROUTES, Call, Listing, Reply
from github_fake.payloads import payload
from github_fake.people import Person
from github_fake.render import Render
from github_fake.shapes import Shapes
from github_fake.world import BOT, Files, Issue, Refusal, Repository, World

__all__ = ["GitHubFake", "Record", "Token"]
HANDLERS = (actions, checks, git_data, issues, pulls, repositories)  # importing them fills ROUTES
PAGE, LARGEST_PAGE = 30, 100
DOCUMENTATION = "https://docs.github.com/rest"
LEVELS = {"read": 1, "write": 2}


@dataclass
class Token:
    """Who asks, and what they may do."""

    text: str
    actor: str
    permissions: Mapping[str, str] | None = None  # None: everything
    repository: str | None = None  # where alone it may write; None: everywhere
    expired: bool = False

    def may(self, repository: str | None, needs: Sequence[tuple[str, str]]) -> bool:
        """Any of the alternatives will do. Metadata is open to every token."""
        foreign = self.repository is not None and repository not in (None, self.repository.lower())
        return not needs or any(
            LEVELS.get(self._level(what), 0) >= LEVELS[level] and not (foreign and level == "write")
            for what, level in needs
        )

    def _level(self, what: str) -> str:
        if self.permissions is None:
            return "write"
        return "read" if what == "metadata" else self.permissions.get(what, "")


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


class _Closed(Exception):
    """No answer, or no more of it."""


@dataclass
class GitHubFake:
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

    # --- failures

    def fail_next(
        self,
        operation: str | None = None,
        status: int = 500,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        times: int = 1,
        after: int = 0,
        applied: bool = False,
    ) -> None:
        """An error answer; `applied`: though the operation was done."""
        reply = failure(status, headers, body)
        self.faults.waiting.append(Fault(operation, times, after, reply, applied))

    def limit_rate(
        self, operation: str | None = None, *, reset_in: float = 0, times: int = 1, after: int = 0
    ) -> None:
        """The primary rate limit."""
        self.faults.waiting.append(Fault(operation, times, after, primary_limit(reset_in)))

    def limit_secondary(
        self,
        operation: str | None = None,
        *,
        retry_after: int | None = 0,
        status: int = 403,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """The secondary rate limit; 403 or 429."""
        reply = secondary_limit(retry_after, status)
        self.faults.waiting.append(Fault(operation, times, after, reply))

    def close_connection(
        self,
        operation: str | None = None,
        *,
        body_bytes: int = 0,
        applied: bool = True,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """After so many bytes of the answer's body; 0: without any answer."""
        reply = None if applied else failure(500)
        fault = Fault(operation, times, after, reply, applied, cut=body_bytes)
        self.faults.waiting.append(fault)

    def babble(self, operation: str | None, said: bytes, *, times: int = 1) -> None:
        """Sends this instead of HTTP, and closes the connection."""
        self.faults.waiting.append(Fault(operation, times, raw=said))

    def slow(self, operation: str | None = None, *, seconds: float, times: int = 1) -> None:
        """Answers after a while."""
        self.faults.waiting.append(Fault(operation, times, delay=seconds))

    def rewrite(
        self,
        operation: str | None,
        change: Callable[[Reply], None],
        *,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """Lies: changes a true answer, its headers included, before it is sent."""
        self.faults.waiting.append(Fault(operation, times, after, rewrite=change))

    def before(self, operation: str, action: Callable[[], object]) -> None:
        """Somebody is faster: once, just before the next such call is applied."""
        self._hooks.append((operation, True, action))

    def after(self, operation: str, action: Callable[[], object]) -> None:
        """Once, just after the next such call was applied."""
        self._hooks.append((operation, False, action))

    def kill(self, pid: int, at: int, *, before: bool = False) -> None:
        """SIGKILL to a process right after (or before) its `at`-th call from now is applied."""
        self._applied, self._kill = 0, _Kill(pid, at, before)

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
            self._kill = None

    def state(self) -> dict[str, Any]:
        """What people see: without numbers and times that differ from run to run."""
        with self._lock:
            return {name: _seen(self.world, r) for name, r in self.world.repositories.items()}

    def check(self) -> None:
        """Fails if any request or answer broke GitHub's description."""
        assert not self.violations, "\n".join(self.violations)

    # --- serving

    def __enter__(self) -> GitHubFake:
        self._servers = [ThreadedWSGIServer("127.0.0.1", 0, app, _Handler) for app in self._apps()]
        self.url = f"http://127.0.0.1:{self._servers[0].server_port}"
        self.storage_url = f"http://localhost:{self._servers[1].server_port}"
        self._threads = [
            threading.Thread(target=_serve, args=(server,), daemon=True) for server in self._servers
        ]
        for thread in self._threads:
            thread.start()
        return self

    def payload(
        self, event: str, action: str | None = None, *, number: int | None = None, **given: Any
    ) -> dict[str, Any]:
        """What a workflow finds in GITHUB_EVENT_PATH: see github_fake.payloads."""
        with self._lock:
            render = Render(self.world, self._shapes, self.url)
            return payload(render, self.repository, event, action, number, given)

    def __exit__(self, *exception: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()

    def _apps(self) -> tuple[Any, Any]:
        return self._api, self._storage

    def _api(self, environ: Any, start_response: Any) -> Any:
        return self._send(environ, start_response, self._answer)

    def _storage(self, environ: Any, start_response: Any) -> Any:
        return self._send(environ, start_response, self._download)

    def _send(self, environ: Any, start_response: Any, answer: Any) -> Any:
        try:
            response, cut = answer(Request(environ))
            if cut is None:
                return response(environ, start_response)
            head = f"HTTP/1.1 {response.status}\r\n{response.headers}".encode()
            environ["werkzeug.socket"].sendall(head + response.get_data()[:cut])
        except _Closed as closed:
            environ["werkzeug.socket"].sendall(b"".join(closed.args))
        with contextlib.suppress(OSError):  # the client may be gone
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionAbortedError

    def _answer(self, request: Request) -> tuple[Response, int | None]:
        path = urlsplit(request.environ["REQUEST_URI"]).path
        query = request.query_string.decode()
        text = request.get_data()
        body = json.loads(text) if text else None
        found = self._description.find(request.method, path)
        if found is None:
            self._violate(f"{request.method} {path}", ["GitHub describes no such operation"])
            return self._response(failure(404)), None
        operation, parameters = found
        said = f"{operation.id} ({request.method} {request.environ['REQUEST_URI']})"
        self._violate(said, self._description.wrong_request(operation, parameters, query, body))
        with self._lock:
            self._hook(operation, before=True)
            fault = self.faults.take(operation.id) or Fault()
            self._strike(before=True)
            done = fault.instead is None or fault.applied
            reply = self._apply(operation, parameters, request, body) if done else failure(500)
            reply = fault.instead or reply
            if fault.rewrite:
                fault.rewrite(reply)
            self._hook(operation, before=False)
            closed = fault.cut == 0
            actor = self._token(request)
            self.calls.append(
                Record(
                    operation.id,
                    request.method,
                    request.environ["REQUEST_URI"],
                    body,
                    actor.actor if actor else None,
                    None if closed else reply.status,
                )
            )
            self._strike(before=False)
        time.sleep(fault.delay)
        if fault.raw is not None:
            raise _Closed(fault.raw)
        if closed:
            raise _Closed
        return self._response(reply), fault.cut

    def _apply(
        self, operation: Operation, parameters: Mapping[str, str], request: Request, body: Any
    ) -> Reply:
        try:
            reply = self._handle(operation, parameters, request, body)
        except Refusal as refusal:
            return _refused(refusal)
        said = f"{operation.id}: the fake's answer"
        self._violate(said, self._description.wrong_response(operation, reply.status, reply.body))
        return reply

    def _handle(
        self, operation: Operation, parameters: Mapping[str, str], request: Request, body: Any
    ) -> Reply:
        token = self._token(request)
        name = _named(parameters)
        if name in self.world.moved:
            path = urlsplit(request.environ["REQUEST_URI"])
            rest = path.path.split("/", 4)[4:]
            where = "/".join([f"{self.url}/repos/{self.world.moved[name]}", *rest])
            status = 301 if request.method == "GET" else 307
            return Reply(status, {"message": "Moved Permanently"}, {"location": where})
        if token is None or token.expired:
            raise Refusal(
                401,
                "Bad credentials"
                if "Authorization" in request.headers
                else "Requires authentication",
            )
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
            return _page(answer, request, self.url)
        return answer if isinstance(answer, Reply) else Reply(200, answer)

    def _token(self, request: Request) -> Token | None:
        given = request.headers.get("Authorization", "")
        return self.tokens.get(re.sub(r"^(token|Bearer) ", "", given))

    def _download(self, request: Request) -> tuple[Response, int | None]:
        if "Authorization" in request.headers:
            self._violate(request.path, ["a token was sent to the host of downloads"])
            return Response("<Error/>", 403), None
        fault = self.faults.take("download") or Fault()
        if fault.instead:
            return self._response(fault.instead), fault.cut
        signed = request.args.get("sig") == "s3cret"
        number = int(request.path.rpartition("/")[2] or 0) if signed else 0
        for repository in self.world.repositories.values():
            if number in repository.artifacts:
                data = repository.artifacts[number].data
                time.sleep(fault.delay)
                return Response(data, 200, content_type="application/zip"), fault.cut
        return Response("<Error/>", 404), None

    def _response(self, reply: Reply) -> Response:
        if isinstance(reply.body, bytes):
            data = reply.body
        else:
            data = b"" if reply.body is None else json.dumps(reply.body).encode()
        headers = {
            "content-type": "application/json; charset=utf-8",
            "x-ratelimit-limit": "5000",
            "x-ratelimit-remaining": "4999",
            "x-ratelimit-reset": str(int(time.time()) + 3600),
            "x-github-request-id": "C0DE:1",
        } | reply.headers
        return Response(data, reply.status, headers)

    def _violate(self, said: str, problems: Sequence[str] | Iterator[str]) -> None:
        self.violations += [f"{said}: {problem}" for problem in problems]

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
            raise _Closed


def _seen(world: World, repository: Repository) -> dict[str, Any]:
    commits = world.objects.commits
    branches = {
        ref: [(commits[sha].tree, commits[sha].message) for sha in world.objects.history(sha)]
        for ref, sha in repository.refs.items()
    }
    issues = {
        number: (
            issue.state,
            issue.title,
            issue.body,
            sorted(issue.labels),
            [(comment.author, comment.body) for comment in issue.comments],
            commits[issue.pull.head_sha].tree if issue.pull else None,
        )
        for number, issue in repository.issues.items()
    }
    checks = [
        (
            check.name,
            commits[check.head_sha].tree,
            check.status,
            check.conclusion,
            check.external_id,
            check.output,
            check.annotations,
        )
        for check in repository.checks
    ]
    return {
        "labels": sorted((x.name, x.color, x.description) for x in repository.labels),
        "branches": branches,
        "issues": issues,
        "checks": checks,
        "statuses": [(status.context, status.state) for status in repository.statuses],
        "dispatches": list(repository.dispatches),
        "workflow_dispatches": list(repository.workflow_dispatches),
    }


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True

    def log(self, type: str, message: str, *args: Any) -> None: ...

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        self.close_connection = True


def _serve(server: ThreadedWSGIServer) -> None:
    # Werkzeug's own serve_forever() ends on KeyboardInterrupt and takes half a second to stop.
    super(ThreadedWSGIServer, server).serve_forever(poll_interval=0.02)


def _named(parameters: Mapping[str, str]) -> str | None:
    """The repository in a path."""
    if "repo" not in parameters:
        return None
    return f"{parameters['owner']}/{parameters['repo']}".lower()


def _refused(refusal: Refusal) -> Reply:
    headers = {}
    body: dict[str, Any] = {"message": refusal.message, "documentation_url": DOCUMENTATION}
    body["status"] = str(refusal.status)
    if refusal.status == 403 and refusal.errors:
        needs = "; ".join(f"{what}={level}" for what, level in refusal.errors[0])
        headers["x-accepted-github-permissions"] = needs
    elif refusal.errors:
        body["errors"] = refusal.errors
    return Reply(refusal.status, body, headers)


def _page(listing: Listing, request: Request, url: str) -> Reply:
    size = min(max(int(request.args.get("per_page", PAGE)), 1), LARGEST_PAGE)
    page = max(int(request.args.get("page", 1)), 1)
    last = max(-(-len(listing.things) // size), 1)
    body: Any = [listing.render(x) for x in listing.things[(page - 1) * size : page * size]]
    if listing.key:
        body = {"total_count": len(listing.things), listing.key: body}
    pages = {"prev": page - 1, "first": 1} if page > 1 else {}
    pages |= {"next": page + 1, "last": last} if page < last else {}
    links = [
        f'<{url}{request.path}?{urlencode({**request.args, "page": number})}>; rel="{relation}"'
        for relation, number in pages.items()
    ]
    return Reply(200, body, {"link": ", ".join(links)} if links else {})
