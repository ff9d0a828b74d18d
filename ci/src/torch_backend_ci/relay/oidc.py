# SPDX-License-Identifier: BSD-3-Clause
"""The token by which the relay knows whose job it hears: GitHub's word for it, good for minutes."""

from __future__ import annotations

import os
import re

from torch_backend_ci.errors import CiError
from torch_backend_ci.github import actions
from torch_backend_ci.relay import http

AUDIENCE = "pytorch-cross-repo-ci-relay"

_CURE = (
    "the job needs `permissions: id-token: write` (a PR from a fork never gets it, a "
    "repository_dispatch does)"
)
_JWT = re.compile(r"[\w-]+=*(\.[\w-]+=*){2}", re.ASCII)


def mint() -> str:
    """A fresh token, masked in the log; CiError where this job may have none."""
    url = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_URL")
    request_token = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
    if not url or not re.fullmatch(r"[!-~]+", request_token):
        raise CiError(f"no OIDC token: {_CURE}")
    http.require_safe(url, "ACTIONS_ID_TOKEN_REQUEST_URL")
    answer = http.ask("GET", url, request_token, params={"audience": AUDIENCE})
    token = answer.text("value")
    if answer.status != 200 or not _JWT.fullmatch(token):
        raise CiError(f"no OIDC token: GitHub answered {answer.status}; {_CURE}")
    actions.mask(token)
    return token
