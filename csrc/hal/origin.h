/* SPDX-License-Identifier: BSD-3-Clause */
/* The extension "origin" of hal.h: which call queued the work that failed. */
#ifndef PUONE_HAL_ORIGIN_H
#define PUONE_HAL_ORIGIN_H

#include "hal/hal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name and version of the extension, for get_extension(). */
#define PUONE_ORIGIN_EXTENSION "origin"
#define PUONE_ORIGIN_VERSION 1u

/* Numbers are the caller's. Both entries are thread-safe, never wait, and cannot fail for a
 * non-NULL argument. */
typedef struct puone_origin_api {
  uint32_t struct_size;
  uint32_t version;

  /* The number of the work that the calling thread queues from now on; 0, as at the start, for
   * none. Work that is captured has it at each launch of its graph. */
  puone_status (*set)(uint64_t number);

  /* The number of the work whose late error an entry reported to the calling thread last; 0 if that
   * work has none, or if there was no such error. Leaves last_error_message() as it is.
   * Errors: INVALID_ARGUMENT. */
  puone_status (*failed)(uint64_t* out);
} puone_origin_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_HAL_ORIGIN_H */
