/* SPDX-License-Identifier: BSD-3-Clause */
/* The extension "collective" of hal.h: processes that exchange device memory directly. */
#ifndef PUONE_HAL_COLLECTIVE_H
#define PUONE_HAL_COLLECTIVE_H

#include "hal/hal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name and version of the extension, for get_extension(). */
#define PUONE_COLLECTIVE_EXTENSION "collective"
#define PUONE_COLLECTIVE_VERSION 1u

/* Names one communicator to all of its ranks. Plain bytes that any channel may carry; each one is
 * used once. */
typedef struct puone_collective_id {
  uint8_t bytes[128]; /* the driver's; compared and copied only */
} puone_collective_id;

/* Names a device to all processes of all machines. */
typedef struct puone_device_identity {
  uint8_t bytes[16]; /* the driver's; compared and copied only */
} puone_device_identity;

/* One rank's end of a communicator: ranks 0 to size - 1, each a process with a device. */
typedef struct puone_communicator_s* puone_communicator;

/* How a collective combines the elements of the ranks. */
PUONE_ENUM(puone_collective_reduction, int32_t){
    /* by the names */
    PUONE_COLLECTIVE_SUM = 0,
    PUONE_COLLECTIVE_PRODUCT = 1,
    PUONE_COLLECTIVE_MIN = 2,
    PUONE_COLLECTIVE_MAX = 3,
    PUONE_COLLECTIVE_AVERAGE = 4 /* the sum divided by the number of ranks; real numbers only */
};

/* A driver offers the extension if it has a library for it on this machine; otherwise
 * get_extension() returns UNSUPPORTED, and the message says what is missing.
 *
 * Order. All ranks call the entries of one communicator in one order, with the same count, type,
 * reduction and root; whether they do is not checked, and ranks that disagree wait for ever or get
 * wrong data. On its stream a call is work like any other: it begins after what was queued before,
 * and ends when this rank's part is done. Calls of one communicator run in the order of the calls,
 * also on different streams.
 *
 * Buffers are device memory of the communicator's device, and stay the caller's. They must stay
 * alive until the work is done. Send and receive buffers are the same (see the entries) or do not
 * overlap. `count` is in elements, and 0 is OK. `type` is a puone_dtype (kernels/args.h).
 * PUONE_UINT8 is always known, so that any bytes can be moved; for another type, or a reduction,
 * that the library does not know an entry returns UNSUPPORTED on every rank.
 *
 * Waiting. The first calls of a communicator may wait until the other ranks make them, too: no
 * thread may hold a lock that these need. Abort() from another thread ends such a wait.
 *
 * Errors. A rank that has died, or a network that fails, is seen by query(). Then, and when others
 * do not come, the work of a communicator may never end: abort() ends it.
 *
 * Threads. All entries are thread-safe. The order of calls on a communicator is the caller's to
 * see to.
 *
 * A stream that is being captured is INVALID_ARGUMENT. */
typedef struct puone_collective_api {
  uint32_t struct_size;
  uint32_t version;

  /* The same in every process that has this device, and another one for each other device.
   * Errors: INVALID_DEVICE. */
  puone_status (*identify)(int32_t device, puone_device_identity* out);

  /* A new id. One rank asks for it and gives it to all. Errors: INTERNAL. */
  puone_status (*create_id)(puone_collective_id* out);

  /* This rank's end of the communicator `id`. Blocks until all ranks have called it, or fails after
   * `timeout_ms`. The caller owns the result. Some libraries refuse two ranks on one device.
   * Errors: INVALID_ARGUMENT (rank or size), INVALID_DEVICE, INTERNAL (the library's error, or the
   * time is over), OUT_OF_MEMORY, DEVICE_LOST. */
  puone_status (*init)(
      int32_t device,
      const puone_collective_id* id,
      int32_t rank,
      int32_t size,
      uint32_t timeout_ms,
      puone_communicator* out);

  /* The handle dies at once. Waits some seconds for the communicator's queued work, and aborts what
   * has not ended then. NULL is a no-op. */
  puone_status (*destroy)(puone_communicator communicator);

  /* Ends the communicator's work on this rank, whatever it has written by then: the streams go on.
   * Waits for nothing; the work ends soon after. From now on every entry but destroy() returns
   * INTERNAL for this handle. Once more has no effect. */
  puone_status (*abort)(puone_communicator communicator);

  /* OK as long as the library knows of no error. INTERNAL with its reason otherwise, and after
   * abort(). Waits for nothing. */
  puone_status (*query)(puone_communicator communicator);

  /* recv = the reduction over the ranks' `send`, on every rank; count elements each. In place if
   * recv == send. Errors of this and all entries below: INVALID_ARGUMENT, UNSUPPORTED,
   * INTERNAL (the library's error, or abort() was called), OUT_OF_MEMORY, DEVICE_LOST. */
  puone_status (*all_reduce)(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_collective_reduction reduction,
      puone_stream stream);

  /* recv = the root's `send`, on every rank; count elements. In place if recv == send. Other ranks
   * do not use `send`. */
  puone_status (*broadcast)(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      int32_t root,
      puone_stream stream);

  /* all_reduce() whose result the root alone has. Other ranks do not use `recv`. */
  puone_status (*reduce)(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_collective_reduction reduction,
      int32_t root,
      puone_stream stream);

  /* recv = the ranks' `send`, one after the other: size * count elements, of which each rank sends
   * count. In place if send is this rank's part of recv. */
  puone_status (*all_gather)(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_stream stream);

  /* recv = this rank's part, count elements, of the reduction over the ranks' `send`, of
   * size * count elements. In place if recv is this rank's part of send. */
  puone_status (*reduce_scatter)(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_collective_reduction reduction,
      puone_stream stream);

  /* count elements to the rank `peer`, which calls recv() with the same count and type. Done once
   * the buffer may be used again; that may be when the peer has received it. */
  puone_status (*send)(
      puone_communicator communicator,
      const void* buffer,
      uint64_t count,
      int32_t type,
      int32_t peer,
      puone_stream stream);

  /* count elements from the rank `peer`. */
  puone_status (*recv)(
      puone_communicator communicator,
      void* buffer,
      uint64_t count,
      int32_t type,
      int32_t peer,
      puone_stream stream);

  /* What the calling thread calls on the communicator until group_end() is one piece of work: it is
   * queued by group_end(), and no part of it waits for another. All of it is on one stream. With it
   * ranks send and receive at once. A group has no groups inside, and is begun and ended whether or
   * not a call inside fails. Errors: INVALID_ARGUMENT, INTERNAL. */
  puone_status (*group_begin)(puone_communicator communicator);

  /* Errors: those of the calls, INVALID_ARGUMENT (no group was begun). */
  puone_status (*group_end)(puone_communicator communicator);
} puone_collective_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_HAL_COLLECTIVE_H */
