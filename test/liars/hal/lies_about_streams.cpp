// SPDX-License-Identifier: BSD-3-Clause
#include "liar.h"

namespace puone::liar {

void streamQueryIsAlwaysTrue(puone_hal_api& table) {
  table.stream_query = [](puone_stream stream) {
    puone_status status = truth().stream_query(stream);
    return status == PUONE_NOT_READY ? PUONE_OK : status;
  };
}

void streamQueryIsNeverTrue(puone_hal_api& table) {
  table.stream_query = [](puone_stream stream) {
    puone_status status = truth().stream_query(stream);
    return status == PUONE_OK ? PUONE_NOT_READY : status;
  };
}

void streamSynchronizeDoesNothing(puone_hal_api& table) {
  table.stream_synchronize = [](puone_stream stream) {
    return stream == nullptr ? PUONE_INVALID_ARGUMENT : PUONE_OK;
  };
}

void waitEventDoesNothing(puone_hal_api& table) {
  table.stream_wait_event = [](puone_stream stream, puone_event event) {
    return stream == nullptr || event == nullptr ? PUONE_INVALID_ARGUMENT : PUONE_OK;
  };
}

} // namespace puone::liar
