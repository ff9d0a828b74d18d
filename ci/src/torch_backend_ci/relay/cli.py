# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci relay`: read what PyTorch's relay sent, and report the result to it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from torch_backend_ci.document import TIME_FORMAT, stamp
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.github import access, actions, event
from torch_backend_ci.output import say, show
from torch_backend_ci.pin import file
from torch_backend_ci.relay import callback, client, dispatch, results
from torch_backend_ci.relay.callback import Ending, Job
from torch_backend_ci.relay.client import Body
from torch_backend_ci.relay.dispatch import Dispatch
from torch_backend_ci.relay.results import Results

_UPSTREAM_HELP = "the repository that dispatches come from; default: %(default)s"

_PERIODIC_BRANCH = "viable/strict"  # PyTorch's last commit whose own jobs were good

_PAYLOAD = """\
Validate the repository_dispatch that started this workflow, and print the values that jobs need.

The relay dispatches no nightly and no periodic run: a workflow `on: schedule` gives --event-type.
Of a nightly run the commit is that of the pin `nightly` (`torch-backend-ci pin update nightly`),
of a periodic one the newest of PyTorch's branch viable/strict.

These are printed, and set as outputs of the step:

  run          true, or false if there is nothing to test (a PR was closed, a ref deleted)
  reason       why there is nothing to test
  event        pull_request, push, nightly or periodic
  upstream     OWNER/NAME
  sha          the commit of PyTorch to test, 40 digits
  pull         number of the PR, empty if there is none
  torch        where a torch with this commit comes from: source (build it), or nightly (its wheel)
  delivery_id  the relay's id of the dispatch
  started_at   now, in UTC, for `relay callback --started-at`

Nothing else of the dispatch is used: anybody can choose branch names and titles.

examples:
  torch-backend-ci relay payload                           # in a workflow `on: repository_dispatch`
  torch-backend-ci relay payload --event-type periodic     # `on: schedule`; needs GITHUB_TOKEN

Exit status: 0 success, also if there is nothing to test; 2 the dispatch is not from the relay, or
the commit cannot be found out.
"""

_CALLBACK = """\
Report to the relay that this job has started (--status in_progress) or ended (--status completed).

Counts and conclusion come from the reports. --conclusion can only make the conclusion worse, and
without a readable report it is a failure. Give each job of a matrix its own --job-name. The command
can be repeated, also after it was killed: a status that the relay already has is not an error, and
if the relay missed the start, the start is reported first. The relay waits 6 hours for the end of a
job and then ends it as timed out: a result that comes later is lost, which is an error.

A nightly or periodic run was not dispatched; give its --event-type. Its commit is that of the torch
in its reports, or --sha. It is reported once, when it is completed, with the time at which it
began: --started-at; in a second attempt, or without the option, the start of the first report.

example:
  torch-backend-ci relay callback --status completed --report reports --job-name sim

Needs `permissions: id-token: write`. Exit status: 0 reported (or ignored: the relay ignores
repositories below level L2); 2 not reported, reported too late, or reported as a failure because a
report is unusable.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`relay` has two sub-verbs."""
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    _add_payload(subverbs)
    _add_callback(subverbs)


def _add_payload(subverbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub = _add(subverbs, "payload", "validate a dispatch, and print what to test", _PAYLOAD)
    sub.add_argument(
        "--event-type", choices=dispatch.SELF_REPORTED, help="for a run that was not dispatched"
    )
    sub.set_defaults(run=_payload)


def _add_callback(subverbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub = _add(subverbs, "callback", "report this job to the relay", _CALLBACK)
    sub.add_argument("--status", required=True, choices=callback.STATUSES)
    sub.add_argument(
        "--report",
        action="append",
        default=[],
        type=Path,
        metavar="R",
        help="report of the suite, or a directory of reports (the shards of one run)",
    )
    sub.add_argument(
        "--conclusion",
        choices=callback.SAID,
        help="the status of the job: ${{ job.status }}, or of another job ${{ needs.JOB.result }}; "
        "default: the conclusion of the reports",
    )
    sub.add_argument("--artifact-url", metavar="URL", help="where the reports can be read")
    sub.add_argument("--job-name", metavar="NAME", help="default: $GITHUB_JOB")
    sub.add_argument(
        "--check-run-id",
        default=os.environ.get("CHECK_RUN_ID") or None,
        metavar="ID",
        help="${{ job.check_run_id }}; default: $CHECK_RUN_ID, else run and attempt",
    )
    sub.add_argument(
        "--event-type", choices=dispatch.SELF_REPORTED, help="for a run that was not dispatched"
    )
    sub.add_argument("--sha", metavar="SHA", help="with --event-type: the commit that was tested")
    sub.add_argument(
        "--started-at",
        metavar="TIME",
        help="with --status completed: when the job began, in UTC: 2026-11-26T04:23:00Z",
    )
    sub.add_argument(
        "--url",
        default=os.environ.get("RELAY_CALLBACK_URL") or client.DEFAULT_URL,
        help="address of the relay; default: $RELAY_CALLBACK_URL, else PyTorch's",
    )
    sub.add_argument(
        "--dry-run", action="store_true", help="print what would be sent, and send nothing"
    )
    sub.set_defaults(run=_callback)


def _add(
    subverbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, line: str, text: str
) -> argparse.ArgumentParser:
    sub = subverbs.add_parser(
        name,
        help=line,
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument(
        "--upstream", default=dispatch.UPSTREAM, metavar="OWNER/NAME", help=_UPSTREAM_HELP
    )
    return sub


def _payload(args: argparse.Namespace) -> int:
    found = _scheduled(args) if args.event_type else dispatch.parse(event.load(), args.upstream)
    outputs = {
        "run": "false" if found.nothing_to_do else "true",
        "reason": found.nothing_to_do or "",
        "event": found.event_type,
        "upstream": found.upstream,
        "sha": found.sha,
        "pull": str(found.pull or ""),
        "torch": found.torch,
        "delivery_id": found.delivery_id,
        "started_at": stamp(_now()),
    }
    for name, value in outputs.items():
        actions.set_output(name, value)
    show("".join(f"{name}={value}\n" for name, value in outputs.items()), None)
    return Exit.OK


def _scheduled(args: argparse.Namespace) -> Dispatch:
    if args.event_type == dispatch.NIGHTLY:
        pin = file.read("nightly")
        if pin.torch is None:
            raise CiError(f"there is no nightly to test: {pin.unresolved}")
        sha = pin.torch.git_version
    else:
        with access.failures(f"read branch {_PERIODIC_BRANCH} of {args.upstream}"):
            sha = access.opened(args.upstream).get_git_ref(f"heads/{_PERIODIC_BRANCH}").object.sha
    return dispatch.self_report(args.event_type, sha, args.upstream)


def _callback(args: argparse.Namespace) -> int:
    job = Job.of(os.environ, args.job_name, args.check_run_id)
    if args.status == callback.IN_PROGRESS:
        return _begun(args, job)
    url = callback.artifact_url(args.artifact_url) if args.artifact_url else None
    found, problem = _results(args.report)
    asked = _self_report(args, found) if args.event_type else _dispatched(args)
    conclusion = callback.conclusion(args.conclusion, found)
    now = _now()
    said = _time(args.started_at) if args.started_at else None
    started = _started(said, found, job, now)
    body = callback.ended(asked, job, now, Ending(conclusion, started, found, url))
    before = None if asked.is_told_once else callback.begun(asked, job, started)
    told = _tell(args, f"{job.name} {args.status} ({conclusion})", body, before)
    if told == client.ENDED and now - started >= callback.PATIENCE:
        raise CiError(
            f"{job.name}: the result came too late: the relay had ended the job, most likely as "
            f"timed out {callback.PATIENCE.seconds // 3600} hours after {stamp(started)}; "
            "run the job again"
        )
    if problem:
        raise CiError(f"reported as {conclusion}, because {problem}")
    return Exit.OK


def _started(said: datetime | None, found: Results | None, job: Job, now: datetime) -> datetime:
    """When the job began. The given time may be that of the first attempt, whose jobs are not all
    run again."""
    if said and said > now:
        raise CiError(f"--started-at {stamp(said)} is not over yet")
    first = said if job.run_attempt == "1" else None
    of_reports = found.started if found and found.started and found.started <= now else None
    return first or of_reports or now


def _begun(args: argparse.Namespace, job: Job) -> int:
    if args.report or args.conclusion or args.artifact_url or args.started_at:
        raise CiError(
            "--report, --conclusion, --artifact-url and --started-at go with --status completed"
        )
    asked = None if args.event_type else _dispatched(args)
    if asked is None or asked.is_told_once:
        say("a nightly or periodic run is reported when it is completed: nothing sent")
    else:
        _tell(args, f"{job.name} {args.status}", callback.begun(asked, job, _now()), None)
    return Exit.OK


def _dispatched(args: argparse.Namespace) -> Dispatch:
    if args.sha:
        raise CiError("--sha goes with --event-type: a dispatch says itself what to test")
    return dispatch.parse(event.load(), args.upstream)


def _self_report(args: argparse.Namespace, found: Results | None) -> Dispatch:
    commits = [args.sha] if args.sha else sorted(found.torch if found else ())
    if len(commits) != 1:
        raise CiError(f"the reports name {len(commits)} commits of PyTorch: say which by --sha")
    return dispatch.self_report(args.event_type, commits[0], args.upstream)


def _results(reports: Sequence[Path]) -> tuple[Results | None, str | None]:
    """The results of the reports, or why they are unusable: the relay gets that, too."""
    try:
        return (results.read(reports) if reports else None), None
    except CiError as error:
        return None, str(error)


def _tell(args: argparse.Namespace, what: str, body: Body, before: Body | None) -> str | None:
    """The relay's answer, as `Relay.tell` gives it; None if nothing is sent."""
    if args.dry_run:
        show(f"would POST to {args.url}\n{json.dumps(body, indent=1)}\n", None)
        return None
    outcome = client.Relay(args.url).tell(body, before)
    say(f"{outcome}: {what}")
    if outcome == client.IGNORED:
        text = "the relay ignores this repository: it is not listed at level L2 or above"
        actions.annotation("warning", text, title="relay")
        say(text)
    return outcome


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _time(text: str) -> datetime:
    try:
        at = datetime.strptime(text, TIME_FORMAT)
    except ValueError:
        raise CiError(
            f"--started-at {text[:40]!r} is not a time like 2026-11-26T04:23:00Z"
        ) from None
    return at.replace(tzinfo=timezone.utc)
