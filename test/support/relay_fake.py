# SPDX-License-Identifier: BSD-3-Clause
"""The relay, the dashboard behind it and GitHub's issuer of tokens, on this machine.

It refuses what the real ones refuse, in their words and order (pytorch/test-infra,
aws/lambda/cross_repo_ci_relay and torchci/lib/crcr): signature, audience and age of the token, the
allowlist's levels, the rate, the state machine, the size. It ends jobs that it has waited for too
long (`sweep`), says what a person runs again who presses the button of a check (`rerequested`), and
shows what the dashboard's queries find (`shown`). Beyond that it notes as violations what the real
one would swallow, and its owner would not have meant.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

AUDIENCE = "pytorch-cross-repo-ci-relay"
ISSUER = "https://token.actions.githubusercontent.com"
CALLBACK, TOKENS = "/github/callback", "/oidc/token"
MAX_HUD = 2 << 20  # bytes
NIGHTLY = ("nightly", "periodic")
ZOMBIE_TIMEOUT = 21_600.0  # seconds; a sweep comes every ten minutes
SHA = "5" * 40

Key = tuple[str, str, int, int, str | None]


@cache
def keys() -> tuple[rsa.RSAPrivateKey, rsa.RSAPrivateKey]:
    """The issuer's, and a stranger's."""
    made = [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2)]
    return made[0], made[1]


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class Closed(ConnectionError):
    """No answer at all: the server drops a connection that raises this."""


@dataclass
class Fault:
    """One way to fail."""

    status: int | None  # None: the connection is closed
    applied: bool = False  # although it was done
    times: int = 1
    path: str = CALLBACK
    body: bytes = b'{"detail": "Internal server error"}'
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class RelayFake:
    """One relay. `with serving()` it listens."""

    repository: str = "octo-org/puone"
    level: int | None = 3  # of the repository in the allowlist
    rate: int = 20  # callbacks in a minute
    lifetime: float = 300.0  # seconds that a token lives
    url: str = ""
    state: dict[Key, str] = field(default_factory=dict)
    hud: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The rows of the dashboard, by their key."""
    check_runs: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Of the upstream PR: name, status, conclusion."""
    external_ids: dict[str, str] = field(default_factory=dict)
    """The run downstream that a check run of this name stands for."""
    waiting: dict[str, float] = field(default_factory=dict)
    """By a key that is taken apart later: until when the end of a job is waited for."""
    heard: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """What was said when a job began."""
    callbacks: list[dict[str, Any]] = field(default_factory=list)
    """All that were authenticated, whatever became of them."""
    tokens: list[str] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    clock: Callable[[], float] = time.time
    sign: Callable[[dict[str, Any]], str] | None = None  # instead of the issuer
    request_token: str = "request-token-0123456789"
    kill: tuple[int, int, bool] | None = None  # process, at which call, before it is applied

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._seen: list[float] = []
        self._calls = 0
        self._deliveries = 0

    # --- what tests set up

    def environment(self) -> dict[str, str]:
        """The variables by which a job finds the relay and the issuer."""
        return {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}{TOKENS}?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": self.request_token,
            "RELAY_CALLBACK_URL": f"{self.url}{CALLBACK}",
        }

    def dispatch(self, event_type: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Dispatch a webhook downstream: the event that the workflow there runs for."""
        self._deliveries += 1
        delivery = f"{self._deliveries:08x}-0000-11ef-8000-000000000000"
        self.state[delivery, self.repository, 0, 0, None] = "dispatched"
        return {
            "action": event_type,
            "branch": "main",
            "client_payload": {
                "event_type": event_type,
                "delivery_id": delivery,
                "payload": payload,
            },
            "repository": {"full_name": self.repository, "default_branch": "main"},
            "sender": {"login": "pytorch-cross-repo-ci-relay[bot]", "type": "Bot"},
        }

    def dispatch_pull_request(self, action: str = "opened", **changes: Any) -> dict[str, Any]:
        """A PR upstream that was opened, pushed to or closed."""
        payload: dict[str, Any] = {
            "action": action,
            "number": 42,
            "repository": {"full_name": "pytorch/pytorch"},
            "pull_request": {
                "number": 42,
                "title": "Make $(copy_data) pure",
                "head": {"sha": SHA, "ref": "patch-1"},
                "base": {"sha": "6" * 40, "ref": "main"},
                "labels": [{"name": "ciflow/crcr/puone"}],
            },
        }
        return self.dispatch("pull_request", payload | changes)

    def dispatch_push(self, ref: str = "refs/heads/main", **changes: Any) -> dict[str, Any]:
        """A push upstream."""
        payload = {"ref": ref, "after": SHA, "repository": {"full_name": "pytorch/pytorch"}}
        return self.dispatch("push", payload | changes)

    def fail_next(self, status: int | None, **how: Any) -> None:
        """The next call fails so; None: the connection is closed."""
        self.faults.append(Fault(status, **how))

    def jobs(self) -> dict[str, str]:
        """How far each job is, by its name."""
        return {str(key[4]): state for key, state in self.state.items() if key[2]}

    # --- what happens without a callback

    def sweep(self) -> list[Key]:
        """End the jobs that were waited for too long, as timed out; which these are."""
        ended = []
        for member in [m for m, until in self.waiting.items() if until <= self.clock()]:
            del self.waiting[member]
            key = _taken_apart(member)
            if self.state.get(key) == "in_progress":
                self._time_out(key)
                ended.append(key)
        return ended

    def _time_out(self, key: Key) -> None:
        body = copy.deepcopy(self.heard[key])
        at = datetime.fromtimestamp(self.clock(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        body["workflow"] |= {"status": "completed", "conclusion": "timed_out", "completed_at": at}
        self._check_run(body, key[1])
        self._forward(body, key[1])
        self.state[key] = "completed"

    def rerequested(self, name: str) -> tuple[str, int]:
        """Somebody presses "re-run" at a check of the PR: the repository and the run of which the
        failed jobs are run again."""
        prefix, owner, repository, workflow, job = name.split("/")
        if prefix != "crcr" or not workflow or not job:
            raise Refused(400, f"not a check of the relay: {name}")
        return f"{owner}/{repository}", int(self.external_ids[name])

    def shown(self, event_type: str, days: int = 7) -> list[dict[str, Any]]:
        """The rows that a page of the dashboard has: those that began in the last days."""
        since = datetime.fromtimestamp(self.clock(), timezone.utc) - timedelta(days=days)
        return [
            row
            for row in self.hud.values()
            if row["event_type"] == event_type
            and row["started_at"]
            and datetime.strptime(row["started_at"], "%Y-%m-%dT%H:%M:%S%z") > since
        ]

    # --- what it answers

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        with self._lock:
            self._calls += 1
            self._maybe_kill(before=True)
            fault = self._fault(request.path)
            if fault and not fault.applied:
                return self._failed(fault)(environ, start)
            response = self._answer(request)
            self._maybe_kill(before=False)
            self.answers.append(response.status_code)
            if fault:
                return self._failed(fault)(environ, start)
            return response(environ, start)

    def _fault(self, path: str) -> Fault | None:
        for fault in self.faults:
            if path == fault.path:
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                return fault
        return None

    def _failed(self, fault: Fault) -> Response:
        if fault.status is None:
            raise Closed
        self.answers.append(fault.status)
        return Response(fault.body, fault.status, fault.headers, "application/json")

    def _maybe_kill(self, before: bool) -> None:
        if self.kill and self.kill[1:] == (self._calls, before):
            os.kill(self.kill[0], signal.SIGKILL)
            raise Closed

    def _answer(self, request: Request) -> Response:
        try:
            content = self._token(request) if request.path == TOKENS else self._callback(request)
            status = 200
        except Refused as refused:
            content, status = {"detail": refused.detail}, refused.status
        return Response(json.dumps(content), status, content_type="application/json")

    # --- the issuer

    def _token(self, request: Request) -> dict[str, Any]:
        if request.headers.get("Authorization", "").lower() != f"bearer {self.request_token}":
            raise Refused(401, "Unauthorized")
        claims = {
            "iss": ISSUER,
            "aud": request.args.get("audience", self.repository),
            "repository": self.repository,
            "iat": int(self.clock()) - 60,
            "exp": int(self.clock() + self.lifetime),
            "jti": str(len(self.tokens)),
        }
        made = self.sign(claims) if self.sign else self.signed(claims)
        self.tokens.append(made)
        return {"count": len(made), "value": made}

    def signed(self, claims: dict[str, Any], by: int = 0) -> str:
        """A token, by the issuer or by a stranger."""
        return jwt.encode(claims, keys()[by], "RS256", {"kid": "fake"})

    # --- the relay

    def _callback(self, request: Request) -> dict[str, Any]:
        if request.path != CALLBACK:
            raise Refused(404, "Not found")
        if request.method != "POST":
            raise Refused(405, "Method not allowed")
        try:
            body = json.loads(request.get_data())
        except ValueError:
            raise Refused(400, "Invalid JSON body") from None
        repository = self._verified(request.headers.get("Authorization", ""))
        self.callbacks.append(body)
        self._notice(request, body)
        if self.level is None or self.level < 2 or repository != self.repository:
            return {"ok": True, "status": "ignored"}
        self._limit()
        return self._handle(body, repository)

    def _verified(self, header: str) -> str:
        if not header:
            raise Refused(401, "Missing authorization token")
        try:
            claims = jwt.decode(
                header.split(" ", 1)[-1],
                keys()[0].public_key(),
                algorithms=["RS256"],
                issuer=ISSUER,
                audience=AUDIENCE,
                options={"verify_exp": False, "verify_iat": False},
            )
            if claims["exp"] < self.clock():
                raise jwt.ExpiredSignatureError
        except jwt.PyJWTError:
            raise Refused(401, "Invalid authorization token") from None
        return str(claims["repository"])

    def _limit(self) -> None:
        now = self.clock()
        self._seen = [*(at for at in self._seen if at > now - 60), now]
        if len(self._seen) > self.rate:
            raise Refused(429, f"rate limit exceeded for {self.repository}")

    def _handle(self, body: dict[str, Any], repository: str) -> dict[str, Any]:
        try:
            delivery, workflow = body["delivery_id"], body["workflow"]
            status = workflow["status"]
            run, attempt = int(workflow["run_id"]), int(workflow.get("run_attempt", 1))
            job = workflow.get("job_name")
        except (KeyError, TypeError) as error:
            raise Refused(400, f"callback body missing required field: {error}") from None
        if body.get("event_type") in NIGHTLY:
            if status != "completed":
                said = f"nightly/periodic callbacks must have status 'completed', got {status!r}"
                raise Refused(400, said)
            return self._forward(body, repository)
        if (delivery, repository, 0, 0, None) not in self.state:
            raise Refused(400, "callback rejected: no matching dispatch record")
        key = (delivery, repository, run, attempt, job)
        self._advance(key, status)
        self._track(key, status, body)
        self._check_run(body, repository)
        return self._forward(body, repository)

    def _track(self, key: Key, status: str, body: dict[str, Any]) -> None:
        member = ":".join(map(str, key))
        if status == "in_progress":
            self.waiting[member] = self.clock() + ZOMBIE_TIMEOUT
            self.heard[key] = body
        else:
            self.waiting.pop(member, None)

    def _advance(self, key: Key, status: str) -> None:
        if status not in ("in_progress", "completed"):
            raise Refused(400, f"unknown callback status: {status!r}")
        allowed = {"in_progress": None, "completed": "in_progress"}
        if self.state.get(key) != allowed[status]:
            said = "callback rejected: invalid state transition"
            raise Refused(400, f"{said} delivery_id={key[0]} repo={key[1]} status={status}")
        self.state[key] = status

    def _check_run(self, body: dict[str, Any], repository: str) -> None:
        pull = body["payload"].get("pull_request") or {}
        labels = {label["name"] for label in pull.get("labels", [])}
        wanted = self.level == 4 or (self.level == 3 and "ciflow/crcr/puone" in labels)
        if wanted and pull.get("head", {}).get("sha"):
            workflow = body["workflow"]
            name = f"crcr/{repository}/{workflow['name']}/{workflow['job_name']}"
            self.check_runs.append((name, workflow["status"], workflow["conclusion"]))
            self.external_ids[name] = workflow["run_id"]

    # --- the dashboard

    def _forward(self, body: dict[str, Any], repository: str) -> dict[str, Any]:
        workflow = body["workflow"]
        told = {"trusted": {"verified_repo": repository}, "untrusted": {"callback_payload": body}}
        if len(json.dumps(told)) > MAX_HUD:
            raise Refused(413, "HUD rejected callback: HTTP 413: Payload exceeds 2MB limit")
        for name in ("job_name", "check_run_id"):
            if not workflow.get(name):
                said = f"Missing required field: workflow.{name}"
                raise Refused(400, f"HUD rejected callback: HTTP 400: {said}")
        parts = (
            repository,
            body["delivery_id"],
            workflow["name"],
            workflow["job_name"],
            workflow["check_run_id"],
        )
        key = "/".join(map(str, parts))
        if self.hud.get(key, {}).get("status") == "completed":
            return {"ok": True, "status": "duplicate"}
        pull = body["payload"].get("pull_request") or {}
        began = self.hud.get(key, {}).get("started_at")
        self.hud[key] = {
            "event_type": body["event_type"],
            "started_at": workflow.get("started_at") or began,
            "status": workflow["status"],
            "conclusion": workflow["conclusion"],
            "pull": pull.get("number", 0),
            "sha": pull.get("head", {}).get("sha")
            or body["payload"].get("head_sha", body["delivery_id"]),
            "test_results": workflow.get("test_results"),
            "artifact_url": workflow.get("artifact_url"),
        }
        return {"ok": True, "status": workflow["status"]}

    def _notice(self, request: Request, body: dict[str, Any]) -> None:
        """What the real one would take without a word."""
        workflow = body.get("workflow", {})
        texts = ("status", "name", "url", "run_id", "run_attempt", "job_name", "check_run_id")
        wrong = [name for name in texts if not isinstance(workflow.get(name), str)]
        if request.content_type != "application/json":
            wrong.append("content type")
        if workflow.get("schema_version") != "1":
            wrong.append("schema_version")
        is_completed = workflow.get("status") == "completed"
        if (workflow.get("conclusion") is not None) != is_completed:
            wrong.append("conclusion")
        if bool(workflow.get("completed_at")) != is_completed:
            wrong.append("completed_at")
        # A nightly run sends one report, at its end, with both times.
        is_told_once = is_completed and body.get("event_type") in NIGHTLY
        if bool(workflow.get("started_at")) == (is_completed and not is_told_once):
            wrong.append("started_at")
        counts = workflow.get("test_results")
        if counts and counts["total"] != sum(v for k, v in counts.items() if k != "total"):
            wrong.append("test_results")
        self.violations += [f"callback: {name}" for name in wrong]


def _taken_apart(member: str) -> Key:
    """The key of a job; a last part that is a number is taken for the attempt, and no name."""
    delivery, *middle = member.split(":")
    job: str | None = None
    try:
        int(middle[-1])
    except ValueError:
        job = middle.pop()
    *repository, run, attempt = middle
    try:
        return delivery, ":".join(repository), int(run), int(attempt), job
    except ValueError:
        return delivery, "", 0, 0, None  # it is dropped


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Say nothing of requests."""

    def connection_dropped(self, *_: Any) -> None:
        """Do not wait for the next request on a connection that was dropped."""
        self.close_connection = True


@contextlib.contextmanager
def serving(**how: Any) -> Iterator[RelayFake]:
    """A relay for as long as the context lasts; its violations are then raised."""
    fake = RelayFake(**how)
    server = make_server("127.0.0.1", 0, fake, threaded=True, request_handler=_Quiet)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert not fake.violations, fake.violations


@pytest.fixture
def relay() -> Iterator[RelayFake]:
    """A relay that lists octo-org/puone at level L3."""
    with serving() as fake:
        yield fake
