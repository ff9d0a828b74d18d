# SPDX-License-Identifier: BSD-3-Clause
# torch.puone for type checkers and editors. A partial stub package (PEP 561): everything else of
# torch is looked up in torch itself.
from torch_puone import *
from torch_puone import amp as amp
from torch_puone import graphs as graphs
from torch_puone import interop as interop
from torch_puone import memory as memory
from torch_puone import random as random
from torch_puone import sanitizer as sanitizer
from torch_puone import streams as streams
