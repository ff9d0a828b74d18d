// SPDX-License-Identifier: BSD-3-Clause
// The probe: what an out-of-tree backend writes against PyTorch, with `override` on everything.
// Parsed with the headers of a torch, never linked: most functions have no body. One surface, one
// file.
#include "surfaces/allocator.h"
#include "surfaces/aoti.h"
#include "surfaces/autocast.h"
#include "surfaces/device.h"
#include "surfaces/dispatcher.h"
#include "surfaces/distributed.h"
#include "surfaces/dlpack.h"
#include "surfaces/dtype.h"
#include "surfaces/fallback.h"
#include "surfaces/generator.h"
#include "surfaces/graph.h"
#include "surfaces/guard.h"
#include "surfaces/hooks.h"
#include "surfaces/host_allocator.h"
#include "surfaces/profiler.h"
#include "surfaces/storage.h"
#include "surfaces/stream_event.h"
#include "surfaces/structured.h"
#include "surfaces/tensor.h"
#include "surfaces/utilities.h"
