# SPDX-License-Identifier: BSD-3-Clause
"""Where our own workflows are played: this repository on the fake of GitHub.

mirror.py   the fake's repositories as git repositories, to be cloned
machine.py  the machines: no compiler, no package is fetched
hub.py      what the runner of workflows asks of GitHub, answered by the fake
acts.py     what people do, and the events that follow from it
"""
