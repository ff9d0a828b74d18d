# SPDX-License-Identifier: BSD-3-Clause
"""The scaffold: a repository for a backend of your own, made from the sources of this one.

names.py     what a backend may be called, and what is renamed in a text
sources.py   which files of this project a backend starts from
license.py   what a licence may be called
edits.py     what differs in them for another backend
write.py     writing the repository
command.py   `python -m torch_puone.new`
files/       what this project has no counterpart of, as it would be for this project
"""
