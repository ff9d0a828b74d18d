# SPDX-License-Identifier: BSD-3-Clause
"""Actions of the marketplace: what the workflows need of each, done to this machine and to the hub.

An action that is not here, an input that is not named here, a permission that the real one needs
and the job has not: mistakes.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workflow_runner.mistakes import Mistake
from workflow_runner.sessions import Session


class StepFailed(Exception):
    """The action would end with an error."""


@dataclass(frozen=True)
class Call:
    """One use of an action."""

    session: Session
    inputs: Mapping[str, str]
    env: Mapping[str, str]

    def paths(self, name: str = "path") -> list[str]:
        return [line.strip() for line in self.inputs.get(name, "").splitlines() if line.strip()]

    def is_on(self, name: str, default: bool = False) -> bool:
        said = self.inputs.get(name, str(default)).lower()
        if said not in ("true", "false"):
            raise Mistake(f"{name}: {said} is neither true nor false")
        return said == "true"

    def needs(self, scope: str, level: str) -> None:
        has = self.session.permissions.get(scope, "none")
        if has != "write" and has != level:
            raise Mistake(f"this needs the permission {scope}: {level}; the job has {has}")

    def place(self, path: str) -> Path:
        """A path of the workspace, or one below the machine's home."""
        home = self.session.machine["HOME"]
        return self.session.workspace / (home + path[1:] if path.startswith("~") else path)


Play = Callable[[Call], dict[str, str]]
STAND_INS: dict[str, Play] = {}


def stand_in(
    name: str, inputs: Sequence[str], required: Sequence[str] = ()
) -> Callable[[Play], Play]:
    def enter(play: Play) -> Play:
        def checked(call: Call) -> dict[str, str]:
            if unknown := call.inputs.keys() - {*inputs, *required}:
                raise Mistake(f"{name} has no input {', '.join(sorted(unknown))}")
            if missing := [i for i in required if not call.inputs.get(i)]:
                raise Mistake(f"{name} needs {', '.join(missing)}")
            return play(call)

        STAND_INS[name] = checked
        return checked

    return enter


# ---- git -----------------------------------------------------------------------------------


@stand_in(
    "actions/checkout",
    (
        *("repository", "ref", "path", "fetch-depth", "persist-credentials", "sparse-checkout"),
        *("submodules", "token"),
    ),
)
def checkout(call: Call) -> dict[str, str]:
    """A clone of as much history as was asked for; who may not push, or has no credentials, finds
    nothing to push to."""
    session = call.session
    call.needs("contents", "read")
    repository = call.inputs.get("repository") or session.repository
    origin = session.hub.git(repository)
    wanted = call.inputs.get("ref") or _reference(session, repository)
    sha = _commit(origin, wanted)
    folder = session.workspace / call.inputs.get("path", "")
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "--quiet", "--initial-branch=unborn")
    alternates = folder / ".git/objects/info/alternates"
    alternates.write_text(f"{_git(origin, 'rev-parse', '--absolute-git-dir')}/objects\n")
    _git(folder, "remote", "add", "origin", str(origin))
    may_push = session.permissions.get("contents") == "write"
    if not (may_push and call.is_on("persist-credentials", True)):
        _git(folder, "config", "remote.origin.pushurl", "/no/credentials")
    depth = int(call.inputs.get("fetch-depth", "1"))
    if depth:
        (folder / ".git/shallow").write_text("".join(f"{s}\n" for s in _edge(origin, sha, depth)))
    else:
        _git(folder, "fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*")
    _check_out(folder, sha, wanted, call.paths("sparse-checkout"))
    session.hub.furnish(repository, folder)
    return {"ref": wanted, "commit": sha}


def _reference(session: Session, repository: str) -> str:
    """Of the run's own repository the commit of the event, else the default branch."""
    if repository == session.repository:
        return session.event.sha
    return session.hub.default_branch(repository)


def _commit(origin: Path, wanted: str) -> str:
    for name in (wanted, f"refs/heads/{wanted}", f"refs/tags/{wanted}"):
        try:
            return _git(origin, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        except StepFailed:
            continue
    raise StepFailed(f"a branch or tag with the name {wanted!r} could not be found")


def _edge(origin: Path, sha: str, depth: int) -> list[str]:
    """The commits whose parents are not fetched."""
    edge = [sha]
    for _ in range(depth - 1):
        edge = [p for s in edge for p in _git(origin, "rev-parse", f"{s}^@").split()] or edge
    return edge


def _check_out(folder: Path, sha: str, wanted: str, only: Sequence[str]) -> None:
    if only:
        _git(folder, "sparse-checkout", "set", *only)
    is_branch = not wanted.startswith("refs/pull/") and wanted != sha
    _git(folder, "checkout", "--quiet", *(["-B", wanted] if is_branch else ["--detach"]), sha)


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StepFailed(f"git {' '.join(words)}: {done.stderr}")
    return done.stdout.strip()


# ---- artifacts -----------------------------------------------------------------------------


@stand_in(
    "actions/upload-artifact",
    (
        "if-no-files-found",
        "retention-days",
        "compression-level",
        "overwrite",
        "include-hidden-files",
    ),
    required=("name", "path"),
)
def upload_artifact(call: Call) -> dict[str, str]:
    files = list(_named(call))
    if not files:
        if call.inputs.get("if-no-files-found", "warn") == "error":
            raise StepFailed(f"no files were found with the path {call.inputs['path']}")
        return {}
    name, hub, run = call.inputs["name"], call.session.hub, call.session.run
    if set('":<>|*?\r\n\\/') & set(name):
        raise StepFailed(f"the artifact name is not valid: {name}")
    if name in hub.artifacts(run) and not call.is_on("overwrite"):
        raise StepFailed(f"an artifact with the name {name} exists already")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for file, inside in files:
            zipped.write(file, inside)
    hub.upload(run, name, archive.getvalue())
    url = f"{hub.server_url}/{call.session.repository}/actions/runs/{run}/artifacts/1"
    return {"artifact-id": "1", "artifact-url": url, "artifact-digest": "0" * 64}


def _named(call: Call) -> Iterator[tuple[Path, str]]:
    """Files, and their names in the archive: below the directory that holds all that was named."""
    found = sorted({file for path in call.paths() for file in _found(call, path)})
    roots = [call.place(path) for path in call.paths()]
    if len(roots) == 1 and roots[0].is_dir():
        top = roots[0]
    elif len(found) == 1:
        top = found[0].parent
    else:
        top = _common([file.parent for file in found]) if found else Path()
    hidden = call.is_on("include-hidden-files")
    for file in found:
        inside = file.relative_to(top)
        if hidden or not any(part.startswith(".") for part in inside.parts):
            yield file, str(inside)


def _found(call: Call, path: str) -> Iterator[Path]:
    place = call.place(path)
    if place.is_dir():
        yield from (file for file in place.rglob("*") if file.is_file())
    elif place.is_file():
        yield place
    elif "*" in path:
        matches = Path("/").glob(str(place).lstrip("/"))
        yield from (file for file in matches if file.is_file())


def _common(folders: Sequence[Path]) -> Path:
    return next(
        p for p in [folders[0], *folders[0].parents] if all(f.is_relative_to(p) for f in folders)
    )


@stand_in(
    "actions/download-artifact",
    ("name", "path", "pattern", "merge-multiple", "run-id", "github-token", "repository"),
)
def download_artifact(call: Call) -> dict[str, str]:
    run = call.session.run
    if "run-id" in call.inputs:
        call.needs("actions", "read")
        if not call.inputs.get("github-token"):
            raise Mistake("an artifact of another run needs github-token")
        run = int(call.inputs["run-id"])
    kept = call.session.hub.artifacts(run)
    target = call.place(call.inputs.get("path", ""))
    if name := call.inputs.get("name"):
        if name not in kept:
            raise StepFailed(f"artifact not found for name: {name}")
        _unpack(kept[name], target)
    else:
        pattern = call.inputs.get("pattern", "*")
        for name, archive in kept.items():
            if Path(name).match(pattern):
                _unpack(archive, target if call.is_on("merge-multiple") else target / name)
    return {"download-path": str(target)}


def _unpack(archive: bytes, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        zipped.extractall(folder)


# ---- pages ---------------------------------------------------------------------------------

_PAGES, _TAR = "github-pages", "artifact.tar"


@stand_in(
    "actions/upload-pages-artifact",
    ("name", "retention-days", "include-hidden-files"),
    required=("path",),
)
def upload_pages(call: Call) -> dict[str, str]:
    """A site in one piece; what is hidden stays behind."""
    top, packed = call.place(call.inputs["path"]), io.BytesIO()
    if not top.is_dir():
        raise StepFailed(f"cannot change to {call.inputs['path']}: no such directory")
    hidden = call.is_on("include-hidden-files")
    with tarfile.open(fileobj=packed, mode="w", dereference=True) as tar:
        for file in sorted(path for path in top.rglob("*") if path.is_file()):
            inside = file.relative_to(top)
            if hidden or not any(part.startswith(".") for part in inside.parts):
                tar.add(file, str(inside))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(_TAR, packed.getvalue())
    call.session.hub.upload(call.session.run, call.inputs.get("name", _PAGES), archive.getvalue())
    return {"artifact_id": "1"}


@stand_in("actions/configure-pages", ("token", "enablement"))
def configure_pages(call: Call) -> dict[str, str]:
    """That Pages is switched on is asked of GitHub."""
    call.needs("pages", "read")
    return {"base_url": _site(call), "base_path": f"/{call.session.repository.split('/')[1]}"}


@stand_in("actions/deploy-pages", ("token", "timeout", "error_count", "artifact_name"))
def deploy_pages(call: Call) -> dict[str, str]:
    """GitHub asks who it is that deploys, and takes the artifact of the run."""
    call.needs("pages", "write")
    call.needs("id-token", "write")
    name = call.inputs.get("artifact_name", _PAGES)
    if name not in (kept := call.session.hub.artifacts(call.session.run)):
        raise StepFailed(f"no artifacts named {name!r} were found for this workflow run")
    with zipfile.ZipFile(io.BytesIO(kept[name])) as zipped:
        if zipped.namelist() != [_TAR]:
            raise StepFailed(f"the artifact {name!r} is no site: it has {zipped.namelist()}")
    return {"page_url": f"{_site(call)}/"}


def _site(call: Call) -> str:
    owner, name = call.session.repository.split("/")
    return f"https://{owner}.github.io/{name}"


# ---- caches --------------------------------------------------------------------------------


def _restore(call: Call) -> dict[str, str]:
    """The exact key, or else the newest that begins with one of the others. What the machine has
    in that place stays."""
    key = call.inputs["key"]
    if not call.session.caches.restore:
        return {"cache-hit": "", "cache-primary-key": key, "cache-matched-key": ""}
    shelf = _shelf(call)
    others = [name for prefix in call.paths("restore-keys") for name in _newest(shelf, prefix)]
    found = next((name for name in [key, *others] if (shelf / _file(name)).is_dir()), "")
    for number, path in enumerate(call.paths()) if found else ():
        kept = shelf / _file(found) / str(number)
        if kept.exists() and not call.place(path).exists():
            _copy(kept, call.place(path))
    hit = "true" if found == key else "false" if found else ""
    return {"cache-hit": hit, "cache-primary-key": key, "cache-matched-key": found}


def _save(call: Call) -> None:
    if not call.session.caches.save:
        return
    kept = _shelf(call) / _file(call.inputs["key"])
    for number, path in enumerate(call.paths()) if not kept.exists() else ():
        if call.place(path).exists():
            _copy(call.place(path), kept / str(number))


def _shelf(call: Call) -> Path:
    """On the machine's disk, for the repository of the run; a PR's and main's are one here."""
    return Path(call.session.machine["HOME"]).parent / "caches" / call.session.repository


def _newest(shelf: Path, prefix: str) -> list[str]:
    if not shelf.is_dir():
        return []
    names = [_name(p.name) for p in sorted(shelf.iterdir(), key=lambda p: -p.stat().st_mtime_ns)]
    return [name for name in names if name.startswith(prefix)]


def _file(key: str) -> str:
    return key.replace("/", "%2F")


def _name(file: str) -> str:
    return file.replace("%2F", "/")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


_CACHE = ("path", "key", "restore-keys", "save-always", "lookup-only", "fail-on-cache-miss")


@stand_in("actions/cache", _CACHE, required=("path", "key"))
def cache(call: Call) -> dict[str, str]:
    call.session.afterwards.append(lambda: _save(call))
    return _restore(call)


@stand_in("actions/cache/restore", _CACHE, required=("path", "key"))
def cache_restore(call: Call) -> dict[str, str]:
    return _restore(call)


@stand_in("actions/cache/save", ("path", "key"), required=("path", "key"))
def cache_save(call: Call) -> dict[str, str]:
    _save(call)
    return {}


# ---- the machine, and what leaves it -------------------------------------------------------


@stand_in(
    "actions/setup-python",
    ("python-version", "python-version-file", "cache", "cache-dependency-path", "architecture"),
)
def set_up_python(call: Call) -> dict[str, str]:
    """The Python that the tests run in is there already."""
    if file := call.inputs.get("python-version-file"):
        if not call.place(file).is_file():
            raise StepFailed(f"the specified python version file does not exist: {file}")
    elif not call.inputs.get("python-version"):
        raise Mistake("actions/setup-python needs python-version, so that it does not change")
    for path in call.paths("cache-dependency-path"):
        if not list(_found(call, path)):
            raise StepFailed(f"no file in the workspace matches {path}")
    return {"python-version": "3", "cache-hit": "false"}


@stand_in("actions/attest-build-provenance", ("subject-path", "subject-digest", "subject-name"))
def attest(call: Call) -> dict[str, str]:
    call.needs("id-token", "write")
    call.needs("attestations", "write")
    if not [file for path in call.paths("subject-path") for file in _found(call, path)]:
        raise StepFailed(f"could not find subject at path {call.inputs.get('subject-path')}")
    return {"bundle-path": "", "attestation-id": "1", "attestation-url": ""}


@stand_in(
    "pypa/gh-action-pypi-publish",
    ("packages-dir", "repository-url", "skip-existing", "attestations", "verbose", "print-hash"),
)
def publish(call: Call) -> dict[str, str]:
    """Trusted publishing: no password, but an identity."""
    call.needs("id-token", "write")
    folder = call.place(call.inputs.get("packages-dir", "dist"))
    files = [f for f in folder.glob("*") if f.suffix == ".whl" or f.name.endswith(".tar.gz")]
    if not files:
        raise StepFailed(f"no packages in {folder.name}")
    return {}


@stand_in(
    "github/codeql-action/upload-sarif", ("sarif_file", "category", "ref", "sha"), ("sarif_file",)
)
def upload_sarif(call: Call) -> dict[str, str]:
    call.needs("security-events", "write")
    if not call.place(call.inputs["sarif_file"]).exists():
        raise StepFailed(f"path does not exist: {call.inputs['sarif_file']}")
    return {"sarif-id": "1"}
