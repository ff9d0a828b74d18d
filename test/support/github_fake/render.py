# SPDX-License-Identifier: BSD-3-Clause
"""What GitHub remembers, as it answers it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from github_fake.git_objects import Change, Entry, Objects, difference
from github_fake.shapes import Shapes
from github_fake.world import (
    Artifact,
    CheckRun,
    Comment,
    Event,
    Issue,
    Label,
    Pull,
    Refusal,
    Repository,
    Run,
    World,
)

ACTIONS_APP = 15368  # GitHub Actions' own number
MOST_INLINE = 1 << 20
MOST_COMPARED = 300  # files of a comparison
Answer = dict[str, Any]


class Render:
    """Every answer's URLs point back to the fake: PyGithub refuses others."""

    def __init__(self, world: World, shapes: Shapes, url: str) -> None:
        self.world, self.url = world, url
        self._shape = shapes.shape

    @property
    def _objects(self) -> Objects:
        return self.world.objects

    def user(self, login: str) -> Answer:
        """People, and bots by their name."""
        kind = "Bot" if login.endswith("[bot]") else "User"
        number = int.from_bytes(login.encode()[:6], "big")
        urls = {"url": f"{self.url}/users/{login}", "html_url": f"https://github.com/{login}"}
        return self._shape("simple-user", {"login": login, "id": number, "type": kind, **urls})

    def me(self, login: str) -> Answer:
        """A user's own page."""
        return self._shape("public-user", {**self.user(login), "user_view_type": "public"})

    def app(self, slug: str) -> Answer:
        """A GitHub App."""
        name = {"slug": slug, "name": slug.replace("-", " ").title(), "id": ACTIONS_APP}
        return self._shape("integration", {**name, "owner": self.user("github")})

    def repository(self, repository: Repository, shape: str = "repository") -> Answer:
        """Full or minimal."""
        return self._shape(
            shape,
            {
                "id": repository.id,
                "name": repository.name,
                "full_name": repository.full_name,
                "owner": self.user(repository.owner),
                "private": repository.private,
                "fork": repository.fork_of is not None,
                "default_branch": repository.default_branch,
                "url": self.of(repository),
                "html_url": f"https://github.com/{repository.full_name}",
            },
        )

    def of(self, repository: Repository, path: str = "") -> str:
        """A URL below the repository."""
        return f"{self.url}/repos/{repository.full_name}{path}"

    def label(self, repository: Repository, label: Label) -> Answer:
        """A definition."""
        return self._shape(
            "label",
            {
                "id": label.id,
                "name": label.name,
                "color": label.color,
                "description": label.description,
                "default": False,
                "url": self.of(repository, f"/labels/{quote(label.name, safe='')}"),
            },
        )

    def labels(self, repository: Repository, issue: Issue) -> list[Answer]:
        """Those on an issue."""
        found = [repository.label(name) for name in issue.labels]
        return [self.label(repository, label) for label in found if label]

    def issue(self, repository: Repository, issue: Issue) -> Answer:
        """An issue; a pull request is one too."""
        url = self.of(repository, f"/issues/{issue.number}")
        kind = "pull" if issue.pull else "issues"
        page = f"https://github.com/{repository.full_name}/{kind}/{issue.number}"
        more: Answer = {}
        if issue.pull:
            api = self.of(repository, f"/pulls/{issue.number}")
            urls = {"diff_url": f"{page}.diff", "patch_url": f"{page}.patch"}
            more["pull_request"] = {"url": api, "html_url": page, **urls}
        common = self._common(repository, issue, url, page)
        return self._shape("issue", common | {"comments": len(issue.comments)} | more)

    def _common(self, repository: Repository, issue: Issue, url: str, page: str) -> Answer:
        return {
            "id": repository.id * 100_000 + issue.number,
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "locked": issue.locked,
            "user": self.user(issue.author),
            "labels": self.labels(repository, issue),
            "created_at": issue.created_at,
            "updated_at": issue.updated_at,
            "closed_at": issue.closed_at,
            "url": url,
            "html_url": page,
            "comments_url": self.of(repository, f"/issues/{issue.number}/comments"),
        }

    def pull(self, repository: Repository, issue: Issue, *, full: bool) -> Answer:
        """As `pulls/get` answers it, or with less, as lists do."""
        pull = issue.pull
        assert pull is not None
        page = f"https://github.com/{repository.full_name}/pull/{issue.number}"
        given = self._common(repository, issue, self.of(repository, f"/pulls/{issue.number}"), page)
        given |= {
            "issue_url": self.of(repository, f"/issues/{issue.number}"),
            "commits_url": self.of(repository, f"/pulls/{issue.number}/commits"),
            "draft": pull.draft,
            "merged_at": pull.merged_at,
            "merge_commit_sha": pull.merge_commit,
            "author_association": "CONTRIBUTOR",
            "head": self._branch(pull.head_repository, pull.head_branch, pull.head_sha),
            "base": self._branch(repository.full_name, pull.base_branch, pull.base_sha),
        }
        if not full:
            return self._shape("pull-request-simple", given)
        given |= {
            "merged": pull.merged_at is not None,
            "merged_by": self.user(pull.merged_by) if pull.merged_by else None,
            "mergeable": None if pull.merged_at else True,
            "mergeable_state": "unknown" if pull.merged_at else "clean",
            "comments": len(issue.comments),
            "changed_files": len(pull_changes(self._objects, pull)),
            "commits": len(pull_commits(self._objects, pull)),
        }
        return self._shape("pull-request", given)

    def _branch(self, name: str | None, branch: str, sha: str) -> Answer:
        repository = self.world.repositories.get((name or "").lower())
        owner = repository.owner if repository else "ghost"
        return {
            "label": f"{owner}:{branch}",
            "ref": branch,
            "sha": sha,
            "user": self.user(owner),
            "repo": self.repository(repository) if repository else None,
        }

    def comment(self, repository: Repository, issue: Issue, comment: Comment) -> Answer:
        """On an issue."""
        page = f"https://github.com/{repository.full_name}/issues/{issue.number}"
        return self._shape(
            "issue-comment",
            {
                "id": comment.id,
                "body": comment.body,
                "user": self.user(comment.author),
                "created_at": comment.created_at,
                "updated_at": comment.updated_at,
                "author_association": "NONE",
                "url": self.of(repository, f"/issues/comments/{comment.id}"),
                "html_url": f"{page}#issuecomment-{comment.id}",
                "issue_url": self.of(repository, f"/issues/{issue.number}"),
            },
        )

    def event(self, repository: Repository, issue: Issue, event: Event) -> Answer:
        """In a timeline."""
        actor = self.user(event.actor)
        if event.comment:
            given = self.comment(repository, issue, event.comment)
            return self._shape(
                "timeline-comment-event", given | {"event": "commented", "actor": actor}
            )
        given = {
            "id": event.id,
            "event": event.kind,
            "actor": actor,
            "created_at": event.created_at,
            "commit_id": event.commit,
            "url": self.of(repository, f"/issues/events/{event.id}"),
        }
        if event.label is None:
            return self._shape("state-change-issue-event", given)
        label = repository.label(event.label)
        given["label"] = {"name": event.label, "color": label.color if label else "ededed"}
        return self._shape(f"{event.kind}-issue-event", given)

    def change(self, repository: Repository, change: Change, ref: str) -> Answer:
        """A file of a difference."""
        blobs = self._objects.blobs
        before, after = (
            blobs.get(sha or "", b"").count(b"\n") for sha in (change.before, change.after)
        )
        moved = {"previous_filename": change.old_path} if change.old_path else {}
        same = change.status == "renamed"
        added, removed = (0, 0) if same else (after, before)
        return self._shape(
            "diff-entry",
            {
                "filename": change.path,
                "status": change.status,
                "sha": change.after or change.before,
                "additions": added,
                "deletions": removed,
                "changes": added + removed,
                "contents_url": self.of(repository, f"/contents/{quote(change.path)}?ref={ref}"),
                **moved,
            },
        )

    def check_run(self, repository: Repository, check: CheckRun) -> Answer:
        """A check run, annotations counted only."""
        url = self.of(repository, f"/check-runs/{check.id}")
        output = {"title": None, "summary": None, "text": None} | check.output
        return self._shape(
            "check-run",
            {
                "id": check.id,
                "name": check.name,
                "head_sha": check.head_sha,
                "status": check.status,
                "conclusion": check.conclusion,
                "external_id": check.external_id,
                "details_url": check.details_url or "https://github.com",
                "started_at": check.started_at,
                "completed_at": check.completed_at,
                "url": url,
                "html_url": f"https://github.com/{repository.full_name}/runs/{check.id}",
                "output": output
                | {
                    "annotations_count": len(check.annotations),
                    "annotations_url": f"{url}/annotations",
                },
                "app": self.app(check.app),
                "pull_requests": [],
                "check_suite": {"id": repository.id},
            },
        )

    def annotation(self, annotation: Answer) -> Answer:
        """Of a check run."""
        return self._shape("check-annotation", annotation)

    def git_commit(self, repository: Repository, sha: str) -> Answer:
        """As git knows it."""
        commit = self._objects.commits[sha]
        person = {"name": commit.author[0], "email": commit.author[1], "date": commit.date}
        url = self.of(repository, "/git/commits")
        return self._shape(
            "git-commit",
            {
                "sha": sha,
                "url": f"{url}/{sha}",
                "html_url": f"https://github.com/{repository.full_name}/commit/{sha}",
                "message": commit.message,
                "author": person,
                "committer": person,
                "tree": {
                    "sha": commit.tree,
                    "url": self.of(repository, f"/git/trees/{commit.tree}"),
                },
                "parents": [
                    {"sha": p, "url": f"{url}/{p}", "html_url": ""} for p in commit.parents
                ],
                "verification": {"verified": False, "reason": "unsigned"},
            },
        )

    def commit(self, repository: Repository, sha: str, files: bool = False) -> Answer:
        """As the site knows it; `files` compares with its first parent."""
        git = self.git_commit(repository, sha)
        url = self.of(repository, "/commits")
        login = git["author"]["name"]
        given = {
            "sha": sha,
            "url": f"{url}/{sha}",
            "html_url": git["html_url"],
            "comments_url": f"{url}/{sha}/comments",
            "commit": {k: git[k] for k in ("message", "author", "committer", "tree", "url")}
            | {"comment_count": 0, "verification": git["verification"]},
            "author": self.user(login),
            "committer": self.user(login),
            "parents": [{**p, "url": f"{url}/{p['sha']}"} for p in git["parents"]],
        }
        if files:
            commit = self._objects.commits[sha]
            given["files"] = [
                self.change(repository, change, sha)
                for change in changes(self._objects, commit.parents[:1], sha)[:300]
            ]
        return self._shape("commit", given)

    def short_branch(self, repository: Repository, name: str, sha: str) -> Answer:
        """In a list."""
        commit = {"sha": sha, "url": self.of(repository, f"/commits/{sha}")}
        return {"name": name, "commit": commit, "protected": False}

    def branch(self, repository: Repository, name: str, sha: str) -> Answer:
        """With its last commit."""
        given = {"name": name, "commit": self.commit(repository, sha), "protected": False}
        return self._shape("branch-with-protection", given)

    def comparison(
        self, repository: Repository, base: str, head: str, query: Mapping[str, str]
    ) -> Answer:
        """Of two commits; the files come with the first page of commits only."""
        objects = self._objects
        start = objects.merge_base(base, head)
        if start is None:
            raise Refusal(404, f"No common ancestor between {base} and {head}.")
        new = [x for x in reversed(objects.history(head)) if x not in objects.history(base)]
        behind = set(objects.history(base)) - set(objects.history(head))
        size, page = int(query.get("per_page", 250)), int(query.get("page", 1))
        parted = "diverged" if new and behind else "ahead" if new else "behind"
        given = {
            "status": parted if new or behind else "identical",
            "ahead_by": len(new),
            "behind_by": len(behind),
            "total_commits": len(new),
            "base_commit": self.commit(repository, base),
            "merge_base_commit": self.commit(repository, start),
            "commits": [self.commit(repository, x) for x in new[(page - 1) * size : page * size]],
            "url": self.of(repository, f"/compare/{base}...{head}"),
        }
        if page == 1:
            found = changes(objects, (start,), head)[:MOST_COMPARED]
            given["files"] = [self.change(repository, change, head) for change in found]
        return self._shape("commit-comparison", given)

    def tree(self, repository: Repository, sha: str, recursive: bool = False) -> Answer:
        """One directory, or all below it."""
        entries = dict(self._objects.trees[sha])
        if recursive:
            entries |= self._objects.files(sha)
        items = []
        for path, entry in entries.items():
            url = self.of(repository, f"/git/{entry.kind}s/{entry.sha}")
            item = {"path": path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha}
            size = {"size": len(self._objects.blobs[entry.sha])} if entry.kind == "blob" else {}
            items.append(item | size | {"url": url})
        url = self.of(repository, f"/git/trees/{sha}")
        return {"sha": sha, "url": url, "truncated": False, "tree": items}

    def listed(self, repository: Repository, path: str, entry: Entry | None) -> Answer:
        """A file or directory (no entry) in the listing of one."""
        url = self.of(repository, f"/contents/{quote(path)}")
        page = f"https://github.com/{repository.full_name}/blob/HEAD/{quote(path)}"
        size = len(self._objects.blobs.get(entry.sha, b"")) if entry else 0
        return {
            "type": "file" if entry else "dir",
            "name": path.rpartition("/")[2],
            "path": path,
            "sha": entry.sha if entry else "0" * 40,
            "size": size,
            "url": url,
            "git_url": self.of(repository, f"/git/blobs/{entry.sha}") if entry else None,
            "html_url": page,
            "download_url": page if entry else None,
            "_links": {"self": url, "git": url, "html": page},
        }

    def content(self, repository: Repository, path: str, sha: str, data: bytes) -> Answer:
        """A file; one above a megabyte comes without what is in it."""
        large = len(data) > MOST_INLINE
        content = {
            "encoding": "none" if large else "base64",
            "content": "" if large else base64.encodebytes(data).decode(),
        }
        return self.listed(repository, path, Entry("100644", sha)) | content

    def workflow(self, repository: Repository, name: str, path: str) -> Answer:
        """A workflow's file."""
        given = {
            "name": name,
            "path": path,
            "url": self.of(repository, f"/actions/workflows/{name}"),
        }
        return self._shape("workflow", given)

    def ref(self, repository: Repository, ref: str, sha: str) -> Answer:
        """refs/heads/... and what it points to."""
        target = {"type": "commit", "sha": sha, "url": self.of(repository, f"/git/commits/{sha}")}
        url = self.of(repository, f"/git/{quote(ref)}")
        return self._shape("git-ref", {"ref": ref, "url": url, "object": target})

    def run(self, repository: Repository, run: Run) -> Answer:
        """A workflow run. `pull_requests` is empty for forks, as it is on GitHub."""
        head = self.world.repositories.get((run.head_repository or "").lower())
        of_pull = [
            {
                "id": issue.number,
                "number": issue.number,
                "url": self.of(repository, f"/pulls/{issue.number}"),
                "head": self._minimal(repository, pull.head_branch, pull.head_sha),
                "base": self._minimal(repository, pull.base_branch, pull.base_sha),
            }
            for issue, pull in repository.pulls()
            if issue.state == "open"
            and (pull.head_repository, pull.head_branch) == (run.head_repository, run.head_branch)
            and run.head_repository == repository.full_name
        ]
        commit = self._objects.commits[run.head_sha]
        person = {"name": commit.author[0], "email": commit.author[1]}
        url = self.of(repository, f"/actions/runs/{run.id}")
        return self._shape(
            "workflow-run",
            {
                "id": run.id,
                "name": run.name,
                "display_title": commit.message.partition("\n")[0],
                "path": run.path,
                "event": run.event,
                "status": run.status,
                "conclusion": run.conclusion,
                "head_sha": run.head_sha,
                "head_branch": run.head_branch,
                "run_attempt": run.attempt,
                "run_number": run.number,
                "created_at": run.created_at,
                "updated_at": run.created_at,
                "actor": self.user(run.actor),
                "url": url,
                "html_url": f"https://github.com/{repository.full_name}/actions/runs/{run.id}",
                "artifacts_url": f"{url}/artifacts",
                "repository": self.repository(repository, "minimal-repository"),
                "head_repository": self.repository(head, "minimal-repository") if head else None,
                "head_commit": {
                    "id": run.head_sha,
                    "tree_id": commit.tree,
                    "message": commit.message,
                    "timestamp": commit.date,
                    "author": person,
                    "committer": person,
                },
                "pull_requests": of_pull,
            },
        )

    def _minimal(self, repository: Repository, branch: str, sha: str) -> Answer:
        where = {"id": repository.id, "url": self.of(repository), "name": repository.name}
        return {"ref": branch, "sha": sha, "repo": where}

    def artifact(self, repository: Repository, artifact: Artifact) -> Answer:
        """Without its content."""
        url = self.of(repository, f"/actions/artifacts/{artifact.id}")
        run = repository.runs.get(artifact.run_id)
        where = (
            {"id": run.id, "head_sha": run.head_sha, "head_branch": run.head_branch}
            if run
            else None
        )
        return self._shape(
            "artifact",
            {
                "id": artifact.id,
                "name": artifact.name,
                "size_in_bytes": len(artifact.data) if artifact.size is None else artifact.size,
                "url": url,
                "archive_download_url": f"{url}/zip",
                "expired": artifact.expired,
                "created_at": artifact.created_at,
                "updated_at": artifact.created_at,
                "digest": f"sha256:{hashlib.sha256(artifact.data).hexdigest()}",
                "expires_at": "2099-01-01T00:00:00Z",
                "workflow_run": where,
            },
        )

    def blob(self, repository: Repository, sha: str) -> Answer:
        """Its content in base64."""
        data = self._objects.blobs[sha]
        return self._shape(
            "blob",
            {
                "sha": sha,
                "size": len(data),
                "content": base64.encodebytes(data).decode(),
                "encoding": "base64",
                "url": self.of(repository, f"/git/blobs/{sha}"),
            },
        )


def changes(objects: Objects, before: tuple[str, ...], after: str) -> list[Change]:
    """Of a commit since its first parent."""
    old = objects.commits[before[0]].tree if before else objects.add_tree({})
    return difference(objects, old, objects.commits[after].tree)


def pull_changes(objects: Objects, pull: Pull) -> list[Change]:
    """Since head and base parted."""
    start = objects.merge_base(pull.merge_parent or pull.base_sha, pull.head_sha)
    return changes(objects, (start,) if start else (), pull.head_sha)


def pull_commits(objects: Objects, pull: Pull) -> list[str]:
    """Oldest first."""
    known = set(objects.history(pull.merge_parent or pull.base_sha))
    return [sha for sha in reversed(objects.history(pull.head_sha)) if sha not in known]
