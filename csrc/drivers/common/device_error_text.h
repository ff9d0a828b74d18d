// SPDX-License-Identifier: BSD-3-Clause
// The text of an error that a kernel has raised.
#pragma once

#include <string>
#include <string_view>

#include "kernels/device_error.h"

namespace puone {

/// The message with the record's values in place of each "{}".
inline std::string deviceErrorText(std::string_view message, const kernels::ErrorRecord& record) {
  std::string text;
  for (const int64_t value : record.values) {
    const size_t place = message.find("{}");
    if (place == std::string_view::npos) break;
    text.append(message.substr(0, place)).append(std::to_string(value));
    message.remove_prefix(place + 2);
  }
  return text.append(message);
}

} // namespace puone
