// SPDX-License-Identifier: BSD-3-Clause
#include "liar.h"

namespace puone::liar {

void copiesStopShort(puone_hal_api& table) {
  table.memcpy_async =
      [](void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
        return truth().memcpy_async(dst, src, bytes % 4 == 0 ? bytes : bytes - 1, kind, stream);
      };
}

void emptyCopiesAreRefused(puone_hal_api& table) {
  table.memcpy_async =
      [](void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
        return bytes == 0 ? PUONE_INVALID_ARGUMENT
                          : truth().memcpy_async(dst, src, bytes, kind, stream);
      };
}

void rangesAreNotChecked(puone_hal_api& table) {
  table.memcpy_async =
      [](void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
        puone_status status = truth().memcpy_async(dst, src, bytes, kind, stream);
        return status == PUONE_INVALID_ARGUMENT && stream != nullptr ? PUONE_OK : status;
      };
}

void copiesAlwaysWait(puone_hal_api& table) {
  table.memcpy_async =
      [](void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
        puone_status status = truth().memcpy_async(dst, src, bytes, kind, stream);
        return status == PUONE_OK ? truth().stream_synchronize(stream) : status;
      };
}

void memsetRefusesHighBits(puone_hal_api& table) {
  table.memset_async = [](void* dst, int32_t value, size_t bytes, puone_stream stream) {
    return value < 0 || value > 255 ? PUONE_INVALID_ARGUMENT
                                    : truth().memset_async(dst, value, bytes, stream);
  };
}

void peersReceiveNothing(puone_hal_api& table) {
  table.memcpy_async =
      [](void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
        const puone_pointer_attributes to = attributesOf(dst);
        const puone_pointer_attributes from = attributesOf(src);
        const bool peers = to.kind == PUONE_MEMORY_DEVICE && from.kind == PUONE_MEMORY_DEVICE &&
                           to.device != from.device;
        return truth().memcpy_async(dst, src, peers ? 0 : bytes, kind, stream);
      };
}

} // namespace puone::liar
