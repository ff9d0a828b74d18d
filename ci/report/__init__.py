# SPDX-License-Identifier: BSD-3-Clause
"""The privileged half of the gate: tells a pull request what came of its run.

It runs with a token that may write, on behalf of runs that anybody can start. So what it acts on is
asked of GitHub, and the run's artifact is read as evidence only: it can say how bad a change is,
never which pull request, commit or branch is meant. docs/ci/pull-requests.md has the whole model.
"""
