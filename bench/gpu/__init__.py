# SPDX-License-Identifier: BSD-3-Clause
"""`make gpu`: everything that can be found out about the backend on a machine with a GPU.

plan.py names the steps and their deadlines, run.py runs them, result.py is the file they fill, and
page.py is what people read of it. The measurements proper are in `measure/`.
"""
