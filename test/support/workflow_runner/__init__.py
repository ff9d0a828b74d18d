# SPDX-License-Identifier: BSD-3-Clause
"""Plays the workflows of a repository on this machine, each `run:` step in bash.

Stricter than GitHub, which takes what is not there for empty: an output that no step has set, an
input that nobody has declared, a file that a cache's key names in vain are mistakes here. An action
of the marketplace is played by a stand-in (`stand_ins.py`); one without is a mistake, too.

    mistakes.py     what is wrong with a workflow, as opposed to a step that fails
    expressions.py  GitHub's own parser and evaluator, in one node process
    events.py       what happens on GitHub, and which workflows it starts
    permissions.py  what the token of a job may do
    matrix.py       the legs of a job
    commands.py     what a step says to its job: files, and `::commands::` in its output
    shell.py        one script in bash
    steps.py        the steps of a job or of a composite action, one after another
    stand_ins.py    actions of the marketplace
    runs.py         a workflow run: jobs in order, their legs, reusable workflows
    calls.py        the call of a reusable workflow
    results.py      how a run went
    sessions.py     what the steps of one job share
    sources.py      a repository at one commit
    hub.py          what the runner asks of GitHub
    record.py       which steps were played
"""
