# SPDX-License-Identifier: BSD-3-Clause
"""Git's objects and refs through the API."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from github_fake.git_objects import Entry
from github_fake.handling import Call, Reply, handles
from github_fake.world import Refusal

READ, WRITE = "contents=read", "contents=write"
LARGEST_BLOB = 100 << 20
MOST_ENTRIES = 100_000  # of a recursive listing


def decoded(content: str, encoding: str) -> bytes:
    """Of a request."""
    if encoding != "base64":
        return content.encode()
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except binascii.Error:
        raise Refusal(422, "content is not valid Base64") from None


@handles("git/create-blob", WRITE)
def _create_blob(call: Call) -> Reply:
    data = decoded(call.body["content"], call.body.get("encoding", "utf-8"))
    sha = call.world.objects.add_blob(data)
    return Reply(201, {"sha": sha, "url": call.render.of(call.repository, f"/git/blobs/{sha}")})


@handles("git/get-blob", READ)
def _blob(call: Call) -> Any:
    sha = call.path["file_sha"]
    if sha not in call.world.objects.blobs:
        raise Refusal(404, "Not Found")
    if len(call.world.objects.blobs[sha]) > LARGEST_BLOB:
        raise Refusal(403, "This API returns blobs up to 100 MB in size.")
    return call.render.blob(call.repository, sha)


@handles("git/create-tree", WRITE)
def _create_tree(call: Call) -> Reply:
    objects = call.world.objects
    base = call.body.get("base_tree")
    if base is not None and base not in objects.trees:
        raise Refusal(422, "base_tree is not a valid tree oid")
    files = objects.files(base) if base else {}
    for item in call.body["tree"]:
        path, sha = item["path"], item.get("sha")
        if {"", ".", "..", ".git"} & set(path.split("/")):
            raise Refusal(422, "tree contains a malformed path component")
        if item.get("content") is not None:
            sha = objects.add_blob(item["content"].encode())
        below = f"{path}/"
        if sha is None:
            gone = [name for name in files if name == path or name.startswith(below)]
            if not gone:
                raise Refusal(422, "GitRPC::BadObjectState")
            for name in gone:
                del files[name]
        elif item.get("type") == "tree":
            if sha not in objects.trees:
                raise Refusal(422, f"tree.sha {sha} is not a valid tree")
            files = {name: e for name, e in files.items() if not name.startswith(below)}
            files |= objects.files(sha, below)
        elif sha not in objects.blobs:
            raise Refusal(422, f"tree.sha {sha} is not a valid blob")
        else:
            files[path] = Entry(item["mode"], sha)
    return Reply(201, call.render.tree(call.repository, objects.add_files(files)))


@handles("git/get-tree", READ)
def _tree(call: Call) -> Any:
    objects, name = call.world.objects, call.path["tree_sha"]
    name = call.repository.refs.get(f"refs/heads/{name}", name)
    sha = objects.commits[name].tree if name in objects.commits else name
    if sha not in objects.trees:
        raise Refusal(404, "Not Found")
    answer = call.render.tree(call.repository, sha, recursive="recursive" in call.query)
    answer["truncated"] = len(answer["tree"]) > MOST_ENTRIES
    del answer["tree"][MOST_ENTRIES:]
    return answer


@handles("git/create-commit", WRITE)
def _create_commit(call: Call) -> Reply:
    objects, body = call.world.objects, call.body
    if body["tree"] not in objects.trees:
        raise Refusal(422, "Tree SHA does not exist")
    parents = body.get("parents", [])
    if any(parent not in objects.commits for parent in parents):
        raise Refusal(422, "Parent SHA does not exist or is not a commit object")
    author = body.get("author") or {"name": call.actor, "email": f"{call.actor}@github.invalid"}
    date = author.get("date") or call.world.tick()
    person = (author["name"], author["email"])
    sha = objects.add_commit(body["tree"], parents, body["message"], person, date)
    return Reply(201, call.render.git_commit(call.repository, sha))


@handles("git/get-commit", READ)
def _commit(call: Call) -> Any:
    if call.path["commit_sha"] not in call.world.objects.commits:
        raise Refusal(404, "Not Found")
    return call.render.git_commit(call.repository, call.path["commit_sha"])


@handles("git/get-ref", READ)
def _ref(call: Call) -> Any:
    ref = f"refs/{call.path['ref']}"
    if ref not in call.repository.refs:
        raise Refusal(404, "Not Found")
    return call.render.ref(call.repository, ref, call.repository.refs[ref])


@handles("git/create-ref", WRITE)
def _create_ref(call: Call) -> Reply:
    repository, ref, sha = call.repository, call.body["ref"], call.body["sha"]
    if ref in repository.refs:
        raise Refusal(422, "Reference already exists")
    if not ref.startswith("refs/") or ref.count("/") < 2:
        raise Refusal(422, "Reference name must start with 'refs/' and have two slashes")
    if any(other.startswith(f"{ref}/") or ref.startswith(f"{other}/") for other in repository.refs):
        raise Refusal(422, "Reference update failed")  # a file cannot be a directory too
    _must_exist(call, sha)
    call.world.move(repository, ref, sha)
    return Reply(201, call.render.ref(repository, ref, sha))


@handles("git/update-ref", WRITE)
def _update_ref(call: Call) -> Any:
    repository, ref, sha = call.repository, f"refs/{call.path['ref']}", call.body["sha"]
    if ref not in repository.refs:
        raise Refusal(422, "Reference does not exist")
    _must_exist(call, sha)
    forced = call.body.get("force", False)
    if not forced and not call.world.objects.contains(sha, repository.refs[ref]):
        raise Refusal(422, "Update is not a fast forward")
    call.world.move(repository, ref, sha)
    return call.render.ref(repository, ref, sha)


def _must_exist(call: Call, sha: str) -> None:
    if sha not in call.world.objects.commits:
        raise Refusal(422, "Object does not exist")


@handles("git/delete-ref", WRITE)
def _delete_ref(call: Call) -> Reply:
    ref = f"refs/{call.path['ref']}"
    if ref not in call.repository.refs:
        raise Refusal(422, "Reference does not exist")
    call.world.delete_ref(call.repository, ref, call.actor)
    return Reply(204)
