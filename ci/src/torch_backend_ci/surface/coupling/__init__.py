# SPDX-License-Identifier: BSD-3-Clause
"""The decoupling audit of RFC-0039: where generic code of a torch is coupled to one vendor.

    rules.yaml         what the audit looks for, per vendor; which file belongs to which subsystem
    replacements.yaml  what to write instead, and since which torch
    rules.py           both files, read
    files.py           the files of a tree, under names that are the same wherever the tree lies
    names.py           files that are the vendor's as a whole, by their name
    cpp_lexer.py, cpp.py, cmake.py, python.py   vendor words inside generic files
    audit.py           all of it over a tree
    trend.py           two audits compared
    report.py          as text, JSON, Markdown

docs/surface/coupling.md says what counts as coupling.
"""
