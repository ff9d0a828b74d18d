# SPDX-License-Identifier: BSD-3-Clause
from conformance.runner.inprocess import InProcess
class Pool(InProcess):
    def __init__(self, descriptor, options):
        super().__init__(descriptor, options.seed)
