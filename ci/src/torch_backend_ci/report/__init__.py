# SPDX-License-Identifier: BSD-3-Clause
"""The privileged job of the gate: publishes the result of a run on its pull request.

It runs with a token that may write, on behalf of runs that anybody can start. So what it acts on is
asked of GitHub, and the run's artifact is read as evidence only: it can say how bad a change is,
never which pull request, commit or branch is meant. docs/ci/pull-requests.md has the whole model.
"""
