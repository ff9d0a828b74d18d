/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hal.h - the one contract between the reference backend's runtime and a driver.
 *
 * A driver is a shared library that exports exactly one symbol, puone_hal_get(). It returns one
 * table of C functions. Nothing else crosses the boundary: no exceptions, no C++ types, no torch
 * types. The header is C99 and includes nothing but <stddef.h> and <stdint.h>.
 *
 * Conventions, unless an entry says otherwise
 * -------------------------------------------
 * - Status   Every entry that can fail returns a puone_status. On failure the out-parameters are
 *            untouched and last_error_message() holds the reason for the calling thread.
 * - Threads  Every entry may be called from any thread at any time after init() and before
 *            shutdown(). The only per-thread state is the last error. There is no current device:
 *            an entry that creates something takes the device as a parameter.
 * - Misuse   NULL where something is required, an index outside [0, device_count), a dead handle, a
 *            range outside its block, an unknown flag, 0 bytes to allocate or a wrong size is
 *            undefined behaviour of the driver alone. The validation layer (hal/validation.h) wraps
 *            any driver's table and refuses such calls with INVALID_ARGUMENT or INVALID_DEVICE. It
 *            is always around sim; the runtime's loader puts it around any other driver if
 *            PUONE_VALIDATE=1 is in the environment. The capability PUONE_CAP_VALIDATION says that
 *            a table has it. Where a text below names one of these two statuses for misuse, it
 *            describes such a table.
 * - Blocks   An entry does not wait for device work. The entries that do wait are named: init,
 *            shutdown, free, host_free, device_synchronize, stream_synchronize, stream_destroy
 *            (may), event_synchronize. An entry that queues work may wait if its stream already
 *            holds 256 pieces that have not run.
 * - Order    Work on one stream runs in submission order. Work on different streams is unordered
 *            unless an event orders it. There is no default stream: the runtime creates its own.
 * - Errors   Work that was accepted may still fail later. Such an asynchronous error is kept by the
 *            stream and returned, with the name of the launch that failed, by the next
 *            stream_synchronize, device_synchronize or event_synchronize that covers the work, and
 *            by stream_query/event_query. Reporting clears it, except DEVICE_LOST, which stays.
 *            Work behind the failed piece on its stream is skipped until the error is reported;
 *            where the hardware itself runs a stream, copies, fills and kernels may run all the
 *            same, on whatever the failed piece has left.
 * - Handles  Opaque, owned by the driver, created and destroyed in pairs by the caller. Destroying
 *            NULL is a no-op. Using a destroyed handle is misuse.
 * - Structs  A struct that an entry fills begins with struct_size, which the caller sets to the
 *            size that it was compiled with. The driver fills the members that both sides know, and
 *            leaves struct_size as it is. A size below that of the ABI's first minor is misuse.
 * - Enums    Cross as integers of a fixed width.
 * - Memory   Device addresses are unified: one address belongs to at most one device. The host must
 *            never dereference one. Sizes are bytes.
 *
 * Versioning: append-only. New entries go at the end of the table and raise abi_minor; anything
 * else raises abi_major. A caller must not read an entry beyond struct_size. A NULL entry, or an
 * entry beyond struct_size, means unsupported, and describe().capabilities must agree.
 */
#ifndef PUONE_HAL_H
#define PUONE_HAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header's ABI. */
#define PUONE_HAL_ABI_MAJOR 2u
#define PUONE_HAL_ABI_MINOR 0u

/* An enumeration whose values cross the boundary as `integer`: in C a typedef of it, in C++ a type
 * of its own over it. */
#ifdef __cplusplus
#define PUONE_ENUM(name, integer) enum name : integer
#else
#define PUONE_ENUM(name, integer) \
  typedef integer name;           \
  enum
#endif

/* Result of a call. The values are ABI. */
PUONE_ENUM(puone_status, int32_t){
    /* The call did what it was asked for. */
    PUONE_OK = 0,
    /* stream_query/event_query only: work is still pending. Not an error. */
    PUONE_NOT_READY = 1,
    /* An argument is out of range, a handle is dead, a pointer is not of the kind claimed. */
    PUONE_INVALID_ARGUMENT = 2,
    /* A device index is outside [0, device_count). */
    PUONE_INVALID_DEVICE = 3,
    /* Not enough memory. The device stays usable; freeing memory and retrying may succeed. */
    PUONE_OUT_OF_MEMORY = 4,
    /* The driver does not implement this. Probing must be free of side effects. */
    PUONE_UNSUPPORTED = 5,
    /* The device is gone: every later call that touches it returns this until the process ends. */
    PUONE_DEVICE_LOST = 6,
    /* Anything else. The message carries the native code. */
    PUONE_INTERNAL = 7};

/* What a driver offers; bits of puone_driver_info.capabilities. A bit promises the entries that its
 * comment names (csrc/hal/entries.h has them as a table): if it is set, none of them is NULL or
 * returns UNSUPPORTED; if it is clear, each of them is NULL, or does nothing and returns
 * UNSUPPORTED. Only the entries of the section "device" may do their work without the bit, too. No
 * bit promises init, shutdown, describe, last_error_message and device_count, which every driver
 * has, nor get_extension, which is NULL where there are no extensions. */
PUONE_ENUM(puone_capability, uint64_t){
    /* device_synchronize, stream_create, stream_destroy, stream_query, stream_synchronize,
     * stream_native_handle */
    PUONE_CAP_STREAMS = 1u << 0,
    /* stream_priority_range, whose range is then wider than 0..0 */
    PUONE_CAP_STREAM_PRIORITIES = 1u << 1,
    /* stream_host_func */
    PUONE_CAP_HOST_FUNC = 1u << 2,
    /* stream_wait_event; event_* but event_elapsed_ms */
    PUONE_CAP_EVENTS = 1u << 3,
    /* event_elapsed_ms */
    PUONE_CAP_EVENT_TIMING = 1u << 4,
    /* malloc, free, pointer_attributes, memcpy_async, memset_async, device_properties,
     * device_memory_info */
    PUONE_CAP_MEMORY = 1u << 5,
    /* host_malloc, host_free */
    PUONE_CAP_PINNED_MEMORY = 1u << 6,
    /* device_can_access_peer, which may then answer 1 for two devices */
    PUONE_CAP_PEER_ACCESS = 1u << 7,
    /* kernel_find, kernel_launch */
    PUONE_CAP_KERNELS = 1u << 8,
    /* stream_from_native */
    PUONE_CAP_EXTERNAL_STREAMS = 1u << 9,
    /* no entry: misuse is refused, not undefined */
    PUONE_CAP_VALIDATION = 1u << 10};

/* A queue of device work, and a mark in such a queue. Owned by the driver; the caller creates and
 * destroys them. */
typedef struct puone_stream_s* puone_stream;
typedef struct puone_event_s* puone_event;
/* A kernel handle is valid until shutdown() and never destroyed; that of a module's kernel
 * (extension "module") until the module is unloaded. */
typedef const struct puone_kernel_s* puone_kernel;

/* Version of the set of kernels that this header was written for (csrc/hal/kernels.yaml). It is
 * raised when a kernel of the set changes what it takes or computes. */
#define PUONE_KERNEL_SET_VERSION 3u

/* Filled by describe(). Strings are static for the life of the library. */
typedef struct puone_driver_info {
  uint32_t struct_size;
  uint32_t kernel_set_version; /* PUONE_KERNEL_SET_VERSION that the driver was built with */
  const char* name;            /* "sim", "cuda", ...: lower case, [a-z0-9_]+ */
  const char* vendor;          /* free text */
  const char* version;         /* version of the driver library */
  uint64_t capabilities;       /* puone_capability bits */
} puone_driver_info;

/* Bytes of a name, with the NUL at its end. */
#define PUONE_NAME_MAX 128

/* Filled by device_properties(). */
typedef struct puone_device_properties {
  uint32_t struct_size;
  int32_t memory_alignment;     /* every malloc() result is a multiple of this, at least 256 */
  char name[PUONE_NAME_MAX];    /* NUL-terminated, for people */
  uint64_t total_memory;        /* bytes */
  int32_t major, minor;         /* compute capability; 0.0 where the idea has no meaning */
  int32_t multiprocessor_count; /* units that run blocks in parallel; at least 1 */
  int32_t warp_size;            /* lanes that run in lock step; 1 where there are none */
} puone_device_properties;

/* Where a pointer lives. */
PUONE_ENUM(puone_memory_kind, int32_t){
    PUONE_MEMORY_UNREGISTERED = 0, /* not known to this driver: ordinary host memory */
    PUONE_MEMORY_HOST = 1,         /* inside a live host_malloc() block */
    PUONE_MEMORY_DEVICE = 2        /* inside a live malloc() block, or device memory of another
                                    * library (extension "dlpack") */
};

/* Filled by pointer_attributes(). */
typedef struct puone_pointer_attributes {
  uint32_t struct_size;
  puone_memory_kind kind; /* where the pointer lives */
  int32_t device;         /* owner of DEVICE memory, -1 otherwise */
  int32_t reserved;
  void* base;  /* start of the block; the pointer itself for memory of another library; NULL when
                * UNREGISTERED */
  size_t size; /* bytes of the block; 0 when UNREGISTERED or memory of another library */
} puone_pointer_attributes;

/* Between which memory a copy goes. */
PUONE_ENUM(puone_memcpy_kind, int32_t){
    /* by the names */
    PUONE_MEMCPY_HOST_TO_HOST = 0,
    PUONE_MEMCPY_HOST_TO_DEVICE = 1,
    PUONE_MEMCPY_DEVICE_TO_HOST = 2,
    PUONE_MEMCPY_DEVICE_TO_DEVICE = 3 /* same device or peer */
};

/* Flags of event_create(). */
PUONE_ENUM(puone_event_flags, uint32_t){
    PUONE_EVENT_DEFAULT = 0,            /* no timing; event_synchronize may spin */
    PUONE_EVENT_TIMING = 1u << 0,       /* event_elapsed_ms may be asked of it */
    PUONE_EVENT_BLOCKING_SYNC = 1u << 1 /* event_synchronize sleeps rather than spins */
};

/* Runs on a driver thread, in stream order. It must not call into the HAL and must not throw. */
typedef void (*puone_host_func)(void* user_data);

/* Filled by kernel_find(). */
typedef struct puone_kernel_info {
  uint32_t struct_size;
  uint32_t version;       /* of the kernel's contract */
  uint64_t element_types; /* bit (1 << puone_dtype) for each type that it takes; all bits for a
                           * kernel without an element type */
  uint64_t args_size;     /* bytes of its argument struct */
} puone_kernel_info;

/* What a launch may ask of its caller while kernel_launch() runs. */
typedef struct puone_launch_context {
  uint32_t struct_size;
  uint32_t reserved;
  /* Workspace for the kernel: `bytes` > 0 bytes on the stream's device, aligned to
   * memory_alignment, contents undefined. It must stay valid for the work of this launch in stream
   * order, so the caller may give it back to a stream-ordered cache when kernel_launch() returns;
   * for a launch that is captured, as long as the graph may run. On failure *out is untouched and
   * kernel_launch() returns the callback's status. Called on the thread of kernel_launch(), any
   * number of times; it may call the HAL and must not throw. */
  puone_status (*allocate)(void* user, size_t bytes, void** out);
  void* user;
} puone_launch_context;

/* The table of a driver. The caller never changes it; it lives as long as the library. */
typedef struct puone_hal_api {
  /* ---- header: first, for ever ---- */
  uint32_t struct_size; /* bytes of this table as the driver was built */
  uint16_t abi_major;   /* PUONE_HAL_ABI_MAJOR that the driver was built with */
  uint16_t abi_minor;   /* the same for PUONE_HAL_ABI_MINOR */

  /* ---- driver (4) ---- */

  /* Make the driver usable. Idempotent; thread-safe. Starts no thread and creates no context, so
   * that a later fork() is safe. A machine without a device is not an error: device_count gives 0.
   * Errors: INTERNAL. */
  puone_status (*init)(void);

  /* Finish all queued work, join every thread of the driver, release everything. All handles die.
   * Called at most once. Calls on other threads that have begun are waited for; calls that begin
   * later fail with INTERNAL. In a forked child it must return at once without joining. */
  puone_status (*shutdown)(void);

  /* Never fails for a non-NULL out; usable before init(). */
  puone_status (*describe)(puone_driver_info* out);

  /* Text of the calling thread's last failed call, "entry: reason, native code". Valid until the
   * thread's next call. Never NULL; "" if nothing failed. Usable before init(). */
  const char* (*last_error_message)(void);

  /* ---- device (6) ---- */

  /* Number of usable devices, 0 if there is none. Creates no context. */
  puone_status (*device_count)(int32_t* out);

  /* Errors: INVALID_DEVICE. */
  puone_status (*device_properties)(int32_t device, puone_device_properties* out);

  /* Bytes free and total on the device, as malloc() sees them. Errors: INVALID_DEVICE. */
  puone_status (*device_memory_info)(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes);

  /* Block until all work queued on every stream of this device is done. Reports the oldest
   * asynchronous error among them. Other devices are not waited for. Promised by PUONE_CAP_STREAMS.
   * Errors: INVALID_DEVICE, DEVICE_LOST, any asynchronous error. */
  puone_status (*device_synchronize)(int32_t device);

  /* The priorities of the device's streams. Numerically lower is more urgent;
   * least >= 0 >= greatest. Without PUONE_CAP_STREAM_PRIORITIES the entry gives 0 and 0, is NULL or
   * returns UNSUPPORTED; each means that all streams have one priority. Errors: INVALID_DEVICE. */
  puone_status (*stream_priority_range)(int32_t device, int32_t* least, int32_t* greatest);

  /* *out = 1 if kernels and copies on `device` may address memory of `peer`. A device is its own
   * peer. Without PUONE_CAP_PEER_ACCESS the entry gives 0 for any other device, is NULL or returns
   * UNSUPPORTED. Errors: INVALID_DEVICE. */
  puone_status (*device_can_access_peer)(int32_t device, int32_t peer, int32_t* out);

  /* ---- memory (7) ---- */

  /* Allocate on `device`, aligned to memory_alignment. bytes == 0 is INVALID_ARGUMENT. Contents are
   * undefined. The caller owns it. Errors: OUT_OF_MEMORY, INVALID_DEVICE, DEVICE_LOST. */
  puone_status (*malloc)(int32_t device, size_t bytes, void** out);

  /* Release a malloc() result. Waits for queued work of the owning device first. NULL is a no-op.
   * Errors: INVALID_ARGUMENT (not a live block's start). */
  puone_status (*free)(void* ptr);

  /* Page-locked host memory, readable and writable by the host and by every device, at least 64
   * byte aligned. bytes == 0 is INVALID_ARGUMENT. Errors: OUT_OF_MEMORY, DEVICE_LOST (every
   * device is lost). */
  puone_status (*host_malloc)(size_t bytes, void** out);

  /* Release a host_malloc() result. Waits for queued work of all devices first. NULL is a no-op.
   * Errors: INVALID_ARGUMENT. */
  puone_status (*host_free)(void* ptr);

  /* Where `ptr` (any address, also an interior one) lives. Errors: INTERNAL (before init(), after
   * shutdown(), in a forked child that cannot use the driver). */
  puone_status (*pointer_attributes)(const void* ptr, puone_pointer_attributes* out);

  /* Queue a copy of `bytes` on `stream`. Ranges must not overlap. Every range must lie inside one
   * live block of the kind claimed; a HOST range may also be ordinary host memory, which must stay
   * valid and unchanged until the copy is done. May block for ordinary host memory, never for
   * host_malloc() memory. Devices other than the stream's need peer access. bytes == 0 is OK.
   * Errors: INVALID_ARGUMENT, DEVICE_LOST. */
  puone_status (*memcpy_async)(
      void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream);

  /* Queue setting `bytes` bytes of device memory to the low 8 bits of `value`. bytes == 0 is OK.
   * Errors: INVALID_ARGUMENT, DEVICE_LOST. */
  puone_status (*memset_async)(void* dst, int32_t value, size_t bytes, puone_stream stream);

  /* ---- stream (8) ---- */

  /* New stream on `device`. A priority outside stream_priority_range is clamped. The caller owns
   * it. Errors: OUT_OF_MEMORY, INVALID_DEVICE, DEVICE_LOST. */
  puone_status (*stream_create)(int32_t device, int32_t priority, puone_stream* out);

  /* A stream over a native one of `device` that stays its owner's and must outlive the handle and
   * its work: what is queued on the one and on the other runs in one order. The caller owns the
   * handle; destroying it leaves the native stream alone. What stream_native_handle() gives for any
   * stream is accepted. Errors: INVALID_ARGUMENT (NULL, or not a native stream of `device`, as far
   * as the driver can know), INVALID_DEVICE, DEVICE_LOST. */
  puone_status (*stream_from_native)(int32_t device, void* native, puone_stream* out);

  /* The handle dies at once; queued work still runs to its end. May block. NULL is a no-op. */
  puone_status (*stream_destroy)(puone_stream stream);

  /* OK: everything queued so far is done. NOT_READY: something is pending. */
  puone_status (*stream_query)(puone_stream stream);

  /* Block until everything queued before this call is done; report its first error. */
  puone_status (*stream_synchronize)(puone_stream stream);

  /* Queue a wait: later work on `stream` starts only after the most recent record of `event` at the
   * time of this call has completed. An event never recorded does not hold anything up. The event
   * may belong to another device and may be destroyed after this call. */
  puone_status (*stream_wait_event)(puone_stream stream, puone_event event);

  /* Queue a host function. Later work of the stream waits for its return. Not run after an
   * asynchronous error of the stream that has not been reported yet. Host functions of different
   * streams may run one after the other: none may wait for another. */
  puone_status (*stream_host_func)(puone_stream stream, puone_host_func fn, void* user_data);

  /* The native object behind the handle (a cudaStream_t, say), for interoperation; the handle
   * itself where there is none. Owned by the driver. */
  puone_status (*stream_native_handle)(puone_stream stream, void** out);

  /* ---- event (6) ---- */

  /* New event on `device`. flags: puone_event_flags. The caller owns it. An event never recorded
   * counts as complete. Errors: INVALID_ARGUMENT (unknown flag), INVALID_DEVICE, DEVICE_LOST. */
  puone_status (*event_create)(int32_t device, uint32_t flags, puone_event* out);

  /* The handle dies at once; waits already queued on it still hold. NULL is a no-op. */
  puone_status (*event_destroy)(puone_event event);

  /* Queue a record: the event completes when everything queued on `stream` before it is done.
   * Recording again forgets the earlier record. Event and stream must be of one device.
   * Errors: INVALID_ARGUMENT. */
  puone_status (*event_record)(puone_event event, puone_stream stream);

  /* OK: the last record has completed, or there was none. NOT_READY otherwise. */
  puone_status (*event_query)(puone_event event);

  /* Block until the last record has completed. OK at once if there was none. */
  puone_status (*event_synchronize)(puone_event event);

  /* Milliseconds from the completion of `start` to that of `end`, resolution 1 us or better.
   * Both need PUONE_EVENT_TIMING and must have been recorded on the same device, else
   * INVALID_ARGUMENT; NOT_READY if either is pending. */
  puone_status (*event_elapsed_ms)(puone_event start, puone_event end, float* out);

  /* ---- kernel (2) ---- */

  /* Look a kernel up by name (csrc/hal/kernels.yaml lists them and their argument structs) and, if
   * info is not NULL, say what this driver's kernel takes. A driver may lack any kernel, and may
   * take fewer element types than the contract names. Errors: UNSUPPORTED if this driver lacks it,
   * INVALID_ARGUMENT (info->struct_size). */
  puone_status (*kernel_find)(const char* name, puone_kernel_info* info, puone_kernel* out);

  /* Queue a kernel. `args` points to the kernel's argument struct of `bytes` bytes and is copied
   * before the call returns. Pointers inside it are device addresses valid on the stream's device.
   * `context` gives workspace. It may be NULL; a driver that needs workspace from it for this
   * kernel then returns OUT_OF_MEMORY. A driver may take workspace from elsewhere. A launch that
   * fails may have queued a part of its work, which touches nothing but the kernel's outputs and
   * the workspace. A struct member that the kernel does not take, such as an element type, is
   * INVALID_ARGUMENT if the driver reads the struct during this call, else an asynchronous INTERNAL
   * error. Errors: INVALID_ARGUMENT (with validation also: args is NULL, bytes is not args_size, a
   * context without allocate, workspace that is not on the stream's device, too small or not
   * aligned), OUT_OF_MEMORY, DEVICE_LOST, INTERNAL, the status of context->allocate. */
  puone_status (*kernel_launch)(
      puone_kernel kernel,
      const void* args,
      size_t bytes,
      puone_stream stream,
      const puone_launch_context* context);

  /* ---- extension (1) ---- */

  /* Optional tables by name: "fault" (puone_fault_api), "dlpack" (puone_dlpack_api), "graph"
   * (puone_graph_api), "trace" (puone_trace_api). *out lives as long as the library.
   * Errors: UNSUPPORTED if the name is unknown or only an older version is there. */
  puone_status (*get_extension)(const char* name, uint32_t min_version, const void** out);
} puone_hal_api;

/* The one exported symbol. Errors: UNSUPPORTED if abi_major is not the driver's. The table is
 * static and lives as long as the library. Usable before init(), from any thread. */
puone_status puone_hal_get(uint32_t abi_major, const puone_hal_api** out);
/* Type of that symbol, for dlsym(). */
typedef puone_status (*puone_hal_get_fn)(uint32_t abi_major, const puone_hal_api** out);
/* Its name. */
#define PUONE_HAL_GET_SYMBOL "puone_hal_get"

/* ---- extension "fault": injected faults, for tests (simulated drivers only) ---- */

/* Name and version of the extension, for get_extension(). */
#define PUONE_FAULT_EXTENSION "fault"
#define PUONE_FAULT_VERSION 1u

/* All entries are thread-safe, and undone by reset(). */
typedef struct puone_fault_api {
  uint32_t struct_size;
  uint32_t version;

  /* The nth malloc() from now (1 = the next) on any device fails with OUT_OF_MEMORY, once. 0 clears
   * it. */
  puone_status (*out_of_memory_at)(uint64_t nth);

  /* The nth kernel launch from now (1 = the next) is accepted and fails with INTERNAL when it runs,
   * once. 0 clears it. */
  puone_status (*kernel_error_at)(uint64_t nth);

  /* The device is lost from now on: pending work is dropped. Only reset() brings it back. */
  puone_status (*device_lost)(int32_t device);

  /* Every piece of device work takes at least this long. 0 clears it. */
  puone_status (*latency_ns)(uint64_t ns);

  /* Clear all injected faults, lost devices included. */
  puone_status (*reset)(void);
} puone_fault_api;

/* ---- extension "dlpack": the names of memory and streams among other libraries ---- */

/* Name and version of the extension, for get_extension(). */
#define PUONE_DLPACK_EXTENSION "dlpack"
#define PUONE_DLPACK_VERSION 1u

/* For a driver whose memory and streams other libraries of the process can use as they are, because
 * they sit on the same native runtime. Such a driver also takes their memory for its own: for a
 * pointer into it pointer_attributes() answers DEVICE with its device, and copies and kernels
 * accept it. A native stream is what stream_native_handle() gives, made by this driver or by
 * others. */
typedef struct puone_dlpack_api {
  uint32_t struct_size;
  uint32_t version;

  /* DLDeviceType of what malloc() returns. */
  int32_t device_type;
  int32_t reserved;

  /* The native stream that work is on where no stream is named. */
  void* default_stream;

  /* DLDevice.device_id of `device`, the same for every library of the process. Errors:
   * INVALID_DEVICE. */
  puone_status (*device_id)(int32_t device, int32_t* out);

  /* stream_wait_event() for a native stream. NULL names none: INVALID_ARGUMENT. */
  puone_status (*native_stream_wait_event)(void* native_stream, puone_event event);
} puone_dlpack_api;

/* ---- extension "graph": work captured from streams, to be launched again and again ---- */

/* Name and version of the extension, for get_extension(). */
#define PUONE_GRAPH_EXTENSION "graph"
#define PUONE_GRAPH_VERSION 1u

/* Captured work. The caller owns it. */
typedef struct puone_graph_s* puone_graph;

/* Between capture_begin and capture_end, memcpy_async, memset_async, kernel_launch,
 * stream_host_func and event_record on the stream queue nothing: they become part of a graph, with
 * their arguments as they are now. A stream that waits for an event so recorded becomes part of the
 * same capture, and the first stream must wait for it again before capture_end.
 *
 * A stream that is being captured can be neither queried, synchronised, traced nor destroyed, nor
 * can an event that was recorded in a capture be queried, synchronised or measured:
 * INVALID_ARGUMENT, and the capture goes on. A wait for an event recorded outside is
 * INVALID_ARGUMENT too, and may spoil the capture. Other streams, and allocation on any thread, go
 * on as ever; device_synchronize, free and host_free do not wait for a capture.
 *
 * The caller keeps all memory that the graph uses, and what its host functions use, alive and in
 * place as long as the graph may run. */
typedef struct puone_graph_api {
  uint32_t struct_size;
  uint32_t version;

  /* Errors: INVALID_ARGUMENT if the stream is being captured already. */
  puone_status (*capture_begin)(puone_stream stream);

  /* End the capture that was begun on this stream. The caller owns the graph. On failure the
   * capture is over all the same, and what it had captured is gone. Errors: INVALID_ARGUMENT if
   * none was begun, if another stream was left unjoined, or if the capture was spoilt. */
  puone_status (*capture_end)(puone_stream stream, puone_graph* out);

  /* *out = 1 if work queued on the stream is being captured now. */
  puone_status (*is_capturing)(puone_stream stream, int32_t* out);

  /* Make the graph ready for launch: the expensive part. Done again, it does nothing. */
  puone_status (*instantiate)(puone_graph graph);

  /* Queue the whole graph on a stream of the device it was captured on. Launches of one graph run
   * one after the other. An error of the graph's work arrives as one of the stream's.
   * Errors: INVALID_ARGUMENT (not instantiated, the stream is of another device or being
   * captured). */
  puone_status (*launch)(puone_graph graph, puone_stream stream);

  /* The handle dies at once; queued launches still run to their end. NULL is a no-op. */
  puone_status (*destroy)(puone_graph graph);
} puone_graph_api;

/* ---- extension "trace": what the device did, and when ---- */

/* Name and version of the extension, for get_extension(). */
#define PUONE_TRACE_EXTENSION "trace"
#define PUONE_TRACE_VERSION 1u

/* What a piece of work is. */
PUONE_ENUM(puone_trace_kind, int32_t){
    PUONE_TRACE_COPY = 0,      /* memcpy_async */
    PUONE_TRACE_FILL = 1,      /* memset_async */
    PUONE_TRACE_KERNEL = 2,    /* kernel_launch */
    PUONE_TRACE_HOST_FUNC = 3, /* stream_host_func */
    PUONE_TRACE_GRAPH = 4      /* one launch of a graph */
};

/* One piece of work that was queued while tracing was on. */
typedef struct puone_trace_record {
  const char* name;     /* of the kernel, or of the entry; static until shutdown() */
  puone_stream stream;  /* as it was queued on; the handle may be dead by now */
  uint64_t begin_ns;    /* when it began, on the host's CLOCK_MONOTONIC */
  uint64_t end_ns;      /* when it was done; not before begin_ns */
  uint64_t bytes;       /* copied or filled, 0 for the other kinds */
  uint64_t correlation; /* number of the piece of work, from 1, unique in the process */
  int32_t kind;         /* puone_trace_kind */
  int32_t device;       /* the stream's */
} puone_trace_record;

/* One trace at a time, of all devices. All entries are thread-safe. */
typedef struct puone_trace_api {
  uint32_t struct_size;
  uint32_t version;

  /* Record all work queued from now on, by any thread. Errors: INVALID_ARGUMENT if it is on. */
  puone_status (*start)(void);

  /* Stop, wait for the work recorded, and give the records in the order in which the work was
   * queued. They live until the next start() or shutdown(). Errors: INVALID_ARGUMENT if it is
   * off, DEVICE_LOST. */
  puone_status (*stop)(const puone_trace_record** out, uint64_t* count);

  /* The correlation of the last piece of work that the calling thread queued under tracing, 0 if
   * there was none. */
  puone_status (*correlation)(uint64_t* out);
} puone_trace_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_HAL_H */
