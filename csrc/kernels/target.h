// SPDX-License-Identifier: BSD-3-Clause
// What a function that touches elements is marked with. The host's compiler needs no marks; a
// driver that compiles the kernels for a real device defines these for its compiler, as "callable
// from host and device" and "callable on the device".
#pragma once

#ifndef PUONE_FN
#define PUONE_FN inline // member functions of functors, helpers
#endif
#ifndef PUONE_DEVICE
#define PUONE_DEVICE // lambdas: [=] PUONE_DEVICE (int64_t i) {...}
#endif
