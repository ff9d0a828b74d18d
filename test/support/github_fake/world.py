# SPDX-License-Identifier: BSD-3-Clause
"""Everything that GitHub remembers, and what may happen to it. Plain data: copy it to go back."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from github_fake.git_objects import Entry, Objects

BOT = "github-actions[bot]"  # who a workflow's own token acts as
Files = Mapping[str, "str | bytes | None"]  # path to content; None takes the file away


class Refusal(Exception):
    """GitHub says no."""

    def __init__(self, status: int, message: str, *errors: Any) -> None:
        super().__init__(message)
        self.status, self.message, self.errors = status, message, list(errors)


def invalid(resource: str, field: str, code: str, message: str = "") -> Refusal:
    """The usual 422."""
    error = {"resource": resource, "field": field, "code": code}
    return Refusal(422, "Validation Failed", error | ({"message": message} if message else {}))


@dataclass
class Label:
    """A definition, not its use."""

    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass
class Comment:
    """On an issue or pull request."""

    id: int
    author: str
    body: str
    created_at: str
    updated_at: str


@dataclass
class Event:
    """In the timeline of an issue."""

    id: int
    kind: str
    actor: str
    created_at: str
    label: str | None = None
    commit: str | None = None
    comment: Comment | None = None


@dataclass
class Issue:
    """An issue; with `pull`, a pull request."""

    number: int
    author: str
    title: str
    body: str | None
    created_at: str
    updated_at: str
    state: str = "open"
    locked: bool = False
    closed_at: str | None = None
    labels: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    pull: Pull | None = None


@dataclass
class Pull:
    """What a pull request has beyond an issue."""

    base_branch: str
    base_sha: str
    head_repository: str | None  # full name; None once the fork is deleted
    head_branch: str
    head_sha: str
    draft: bool = False
    merged_at: str | None = None
    merged_by: str | None = None
    merge_commit: str | None = None
    merge_parent: str | None = None  # tip of the base before the merge


@dataclass
class CheckRun:
    """A check run."""

    id: int
    name: str
    head_sha: str
    status: str = "queued"
    conclusion: str | None = None
    external_id: str = ""
    details_url: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    output: dict[str, str | None] = field(default_factory=dict)  # title, summary, text
    annotations: list[dict[str, Any]] = field(default_factory=list)
    app: str = "github-actions"


@dataclass
class Artifact:
    """A zip of a workflow run."""

    id: int
    name: str
    run_id: int
    data: bytes
    created_at: str
    expired: bool = False
    size: int | None = None  # what GitHub claims, if not the truth


@dataclass
class Run:
    """A workflow run."""

    id: int
    name: str
    path: str
    event: str
    head_sha: str
    head_branch: str | None
    head_repository: str | None
    actor: str
    created_at: str = ""
    status: str = "completed"
    conclusion: str | None = "success"
    attempt: int = 1
    number: int = 1


@dataclass
class Repository:
    """A repository; forks have their own."""

    id: int
    full_name: str
    default_branch: str
    private: bool = False
    fork_of: str | None = None
    labels: list[Label] = field(default_factory=list)
    issues: dict[int, Issue] = field(default_factory=dict)
    checks: list[CheckRun] = field(default_factory=list)
    refs: dict[str, str] = field(default_factory=dict)  # refs/heads/main -> sha
    runs: dict[int, Run] = field(default_factory=dict)
    artifacts: dict[int, Artifact] = field(default_factory=dict)
    dispatches: list[tuple[str, Any]] = field(default_factory=list)  # event type, client payload
    workflow_dispatches: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def owner(self) -> str:
        """The part before the slash."""
        return self.full_name.partition("/")[0]

    @property
    def name(self) -> str:
        """The part behind the slash."""
        return self.full_name.partition("/")[2]

    def label(self, name: str) -> Label | None:
        """GitHub does not tell upper from lower case here."""
        return next((x for x in self.labels if x.name.lower() == name.lower()), None)

    def issue(self, number: int) -> Issue:
        """Or 404."""
        if number not in self.issues:
            raise Refusal(404, "Not Found")
        return self.issues[number]

    def pulls(self) -> list[tuple[Issue, Pull]]:
        """Newest first, as GitHub lists them."""
        every = sorted(self.issues.values(), key=lambda issue: -issue.number)
        return [(issue, issue.pull) for issue in every if issue.pull]


@dataclass
class World:
    """All repositories, and the clock."""

    objects: Objects = field(default_factory=Objects)
    repositories: dict[str, Repository] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)  # old full name to the new one
    now: datetime.datetime = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    last_id: int = 1000

    def id(self) -> int:
        """A new one."""
        self.last_id += 1
        return self.last_id

    def tick(self) -> str:
        """A second later, as GitHub writes it."""
        self.now += datetime.timedelta(seconds=1)
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def repository(self, full_name: str) -> Repository:
        """Or 404."""
        if full_name.lower() not in self.repositories:
            raise Refusal(404, "Not Found")
        return self.repositories[full_name.lower()]

    def add_repository(
        self,
        full_name: str,
        files: Files | None = None,
        *,
        default_branch: str = "main",
        private: bool = False,
        fork_of: str | None = None,
    ) -> Repository:
        """With one commit, or with the branches of what it is a fork of."""
        repository = Repository(self.id(), full_name, default_branch, private, fork_of)
        self.repositories[full_name.lower()] = repository
        if fork_of:
            repository.refs = dict(self.repository(fork_of).refs)
        else:
            tree = self.tree({}, files or {"README.md": f"# {repository.name}\n"})
            first = self.commit(tree, [], "Begin")
            repository.refs[f"refs/heads/{default_branch}"] = first
        return repository

    def rename(self, repository: Repository, full_name: str) -> None:
        """Who knows the old name is sent on, as far as he only reads."""
        del self.repositories[repository.full_name.lower()]
        self.moved[repository.full_name.lower()] = full_name
        repository.full_name = full_name
        self.repositories[full_name.lower()] = repository

    # --- git

    def tree(self, old: Mapping[str, Entry], files: Files) -> str:
        """`old` with changed files."""
        whole = dict(old)
        for path, content in files.items():
            if content is None:
                del whole[path]
            else:
                data = content.encode() if isinstance(content, str) else content
                whole[path] = Entry("100644", self.objects.add_blob(data))
        return self.objects.add_files(whole)

    def commit(self, tree: str, parents: list[str], message: str, author: str = "someone") -> str:
        """Its sha."""
        email = f"{author}@users.noreply.github.com"
        return self.objects.add_commit(tree, parents, message, (author, email), self.tick())

    def push(
        self,
        repository: Repository,
        files: Files,
        branch: str = "",
        *,
        message: str = "Change",
        author: str = "someone",
        onto: str | None = None,
    ) -> str:
        """A commit with changed files onto a branch, or instead of it (`onto`: a forced push)."""
        ref = f"refs/heads/{branch or repository.default_branch}"
        main = repository.refs.get(f"refs/heads/{repository.default_branch}")
        parent = onto or repository.refs.get(ref) or main
        old = self.objects.files(self.objects.commits[parent].tree) if parent else {}
        sha = self.commit(self.tree(old, files), [parent] if parent else [], message, author)
        self.move(repository, ref, sha)
        return sha

    def move(self, repository: Repository, ref: str, sha: str) -> None:
        """A ref; the pull requests from it follow."""
        before = repository.refs.get(ref)
        repository.refs[ref] = sha
        self._heads_follow(repository, ref, sha)
        self._settle(repository, ref, before)

    def _heads_follow(self, repository: Repository, ref: str, sha: str) -> None:
        branch = ref.removeprefix("refs/heads/")
        for other in self.repositories.values():
            for issue, pull in other.pulls():
                source = (pull.head_repository or "").lower()
                same = (source, pull.head_branch) == (repository.full_name.lower(), branch)
                if same and issue.state == "open":
                    pull.head_sha = sha
                    issue.updated_at = self.tick()

    def _settle(self, moved: Repository, ref: str, before: str | None) -> None:
        """An open pull request ends when its base has all of it.

        It is merged if the base came to it, and only closed if its head went back to the base.
        """
        for base in self.repositories.values():
            for issue, pull in base.pulls():
                target = f"refs/heads/{pull.base_branch}"
                tip = base.refs.get(target)
                if (
                    issue.state != "open"
                    or not tip
                    or not self.objects.contains(tip, pull.head_sha)
                ):
                    continue
                if (base.full_name, target) == (moved.full_name, ref):
                    pull.merge_commit, pull.merge_parent, pull.merged_by = tip, before, issue.author
                    self.event(issue, "merged", issue.author, commit=tip)
                    pull.merged_at = issue.updated_at
                self.set_state(issue, "closed", issue.author)

    def delete_ref(self, repository: Repository, ref: str, actor: str) -> None:
        """Pull requests from a branch do not outlive it."""
        del repository.refs[ref]
        for base in self.repositories.values():
            for issue, pull in base.pulls():
                source = ((pull.head_repository or "").lower(), f"refs/heads/{pull.head_branch}")
                if issue.state == "open" and source == (repository.full_name.lower(), ref):
                    self.set_state(issue, "closed", actor)

    def add_run(
        self,
        repository: Repository,
        head_sha: str,
        *,
        path: str = ".github/workflows/pr.yml",
        name: str = "pr",
        event: str = "pull_request",
        head_branch: str | None = None,
        head_repository: str | None = None,
        actor: str = "contributor",
        status: str = "completed",
        conclusion: str | None = "success",
        attempt: int = 1,
    ) -> Run:
        """A workflow run."""
        number = 1 + sum(run.path == path for run in repository.runs.values())
        head_repository = head_repository or repository.full_name
        head_branch = head_branch or repository.default_branch
        run = Run(self.id(), name, path, event, head_sha, head_branch, head_repository, actor)
        run.created_at, run.number, run.attempt = self.tick(), number, attempt
        run.status, run.conclusion = status, conclusion
        repository.runs[run.id] = run
        return run

    def add_artifact(self, repository: Repository, run: Run, name: str, data: bytes) -> Artifact:
        """A zip, or what claims to be one."""
        artifact = Artifact(self.id(), name, run.id, data, self.tick())
        repository.artifacts[artifact.id] = artifact
        return artifact

    def file(self, repository: Repository, ref: str, path: str) -> bytes | None:
        """Content on a branch, None if there is none."""
        commit = repository.refs.get(f"refs/heads/{ref}", ref)
        if commit not in self.objects.commits:
            return None
        entry = self.objects.files(self.objects.commits[commit].tree).get(path)
        return self.objects.blobs[entry.sha] if entry else None

    # --- issues

    def define_label(
        self,
        repository: Repository,
        name: str,
        color: str = "ededed",
        description: str | None = None,
    ) -> Label:
        """Refuses what GitHub refuses."""
        if repository.label(name):
            raise invalid("Label", "name", "already_exists")
        check_label(name, color, description)
        label = Label(self.id(), name, color, description)
        repository.labels.append(label)
        return label

    def open_issue(
        self, repository: Repository, author: str, title: str, body: str | None = None
    ) -> Issue:
        """With the next number."""
        now = self.tick()
        number = max(repository.issues, default=0) + 1
        issue = Issue(number, author, title, body, now, now)
        repository.issues[number] = issue
        return issue

    def event(self, issue: Issue, kind: str, actor: str, **more: Any) -> None:
        """Into the timeline."""
        now = self.tick()
        issue.updated_at = now
        issue.events.append(Event(self.id(), kind, actor, now, **more))

    def add_label(self, repository: Repository, issue: Issue, name: str, actor: str) -> None:
        """Defined on the way if it is not yet; no event if it is already there."""
        label = repository.label(name) or self.define_label(repository, name)
        if label.name not in issue.labels:
            if len(issue.labels) >= 100:
                raise invalid("Issue", "labels", "custom", "Issue cannot have more than 100 labels")
            issue.labels.append(label.name)
            self.event(issue, "labeled", actor, label=label.name)

    def remove_label(self, repository: Repository, issue: Issue, name: str, actor: str) -> None:
        """404 if it is not there."""
        label = repository.label(name)
        if label is None or label.name not in issue.labels:
            raise Refusal(404, "Label does not exist")
        issue.labels.remove(label.name)
        self.event(issue, "unlabeled", actor, label=label.name)

    def comment(self, issue: Issue, author: str, body: str) -> Comment:
        """A new one."""
        check_body(body)
        now = self.tick()
        comment = Comment(self.id(), author, body, now, now)
        issue.comments.append(comment)
        issue.updated_at = now
        issue.events.append(Event(comment.id, "commented", author, now, comment=comment))
        return comment

    def set_state(self, issue: Issue, state: str, actor: str) -> None:
        """open or closed; what is merged stays closed."""
        if state == "open" and issue.pull and issue.pull.merged_at:
            raise invalid("PullRequest", "state", "invalid")
        if issue.state != state:
            issue.state = state
            self.event(issue, "closed" if state == "closed" else "reopened", actor)
            issue.closed_at = issue.updated_at if state == "closed" else None

    def open_pull(
        self,
        repository: Repository,
        head: Repository,
        branch: str,
        author: str,
        title: str,
        body: str | None = None,
        base: str = "",
    ) -> Issue:
        """Refuses what GitHub refuses."""
        base = base or repository.default_branch
        head_sha = head.refs.get(f"refs/heads/{branch}")
        base_sha = repository.refs.get(f"refs/heads/{base}")
        if head_sha is None or base_sha is None:
            raise invalid("PullRequest", "base" if head_sha else "head", "invalid")
        if self.objects.contains(base_sha, head_sha):
            text = f"No commits between {base} and {branch}"
            raise invalid("PullRequest", "head", "custom", text)
        for issue, pull in repository.pulls():
            same = (pull.head_repository, pull.head_branch, pull.base_branch)
            if issue.state == "open" and same == (head.full_name, branch, base):
                text = f"A pull request already exists for {head.owner}:{branch}."
                raise invalid("PullRequest", "head", "custom", text)
        issue = self.open_issue(repository, author, title, body)
        issue.pull = Pull(base, base_sha, head.full_name, branch, head_sha)
        return issue

    def merged(self, base: str, head: str) -> str:
        """The tree of `base` with what `head` has changed since they parted."""
        start = self.objects.merge_base(base, head)
        files = self.objects.files(self.objects.commits[base].tree)
        before = self.objects.files(self.objects.commits[start].tree) if start else {}
        after = self.objects.files(self.objects.commits[head].tree)
        for path in before.keys() - after.keys():
            files.pop(path, None)
        files |= {path: entry for path, entry in after.items() if before.get(path) != entry}
        return self.objects.add_files(files)

    def merge(self, repository: Repository, issue: Issue, actor: str, how: str = "merge") -> str:
        """The commit it made on the base: `merge` or `squash`."""
        pull = issue.pull
        assert pull is not None
        ref = f"refs/heads/{pull.base_branch}"
        base = repository.refs[ref]
        parents = [base] if how == "squash" else [base, pull.head_sha]
        text = f"{issue.title} (#{issue.number})"
        if how == "merge":
            text = f"Merge pull request #{issue.number} from {pull.head_branch}\n\n{issue.title}"
        sha = self.commit(self.merged(base, pull.head_sha), parents, text, issue.author)
        pull.merge_commit, pull.merge_parent, pull.merged_by = sha, base, actor
        self.event(issue, "merged", actor, commit=sha)
        pull.merged_at = issue.updated_at
        self.set_state(issue, "closed", actor)
        self.move(repository, ref, sha)
        return sha


def check_label(name: str, color: str, description: str | None) -> None:
    """GitHub's limits on a definition."""
    if not name.strip():
        raise invalid("Label", "name", "missing_field")
    if len(name) > 50:
        raise invalid("Label", "name", "custom", "name is too long (maximum is 50 characters)")
    if len(color) != 6 or set(color.lower()) - set("0123456789abcdef"):
        raise invalid("Label", "color", "invalid")
    if len(description or "") > 100:
        raise invalid("Label", "description", "custom", "description is too long")


def check_body(body: str) -> None:
    """GitHub's limits on a comment."""
    if not body.strip():
        raise invalid("IssueComment", "body", "missing_field", "Body cannot be blank")
    if len(body) > 65_536:
        text = "Body is too long (maximum is 65536 characters)"
        raise invalid("IssueComment", "body", "custom", text)
