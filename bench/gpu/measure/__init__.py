# SPDX-License-Identifier: BSD-3-Clause
"""The backend against torch.cuda: same card, same process, same inputs, in turns.

case.py says what a measurement is, timing.py how time is taken; every other module is one group.
"""
