// SPDX-License-Identifier: BSD-3-Clause
// Streams and events as values.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

namespace probe {
namespace {

void useStreams(c10::Device device) {
  c10::Stream stream(c10::Stream::UNSAFE, device, c10::StreamId{1});
  c10::Stream same =
      c10::Stream::unpack3(stream.pack3().stream_id, stream.device_index(), stream.device_type());
  (void)(same == c10::Stream(c10::Stream::DEFAULT, stream.device()));
  (void)stream.query();
  stream.synchronize();
  c10::Event event(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  event.record(stream);
  event.block(stream);
  stream.wait(event);
  (void)event.query();
  (void)event.flag();
  (void)event.device();
  (void)event.eventId();
  (void)event.was_marked_for_recording();
  (void)event.elapsedTime(c10::Event(device.type(), c10::EventFlag::PYTORCH_DEFAULT));
  event.synchronize();
}

} // namespace
} // namespace probe
