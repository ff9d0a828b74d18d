// SPDX-License-Identifier: BSD-3-Clause
// Choosing the driver a second time, for a program that runs tests in processes that it forks.
#pragma once

namespace puone {

// Chooses the driver by the environment of now: a child that was forked before a device was used
// may want another driver, or other options of it. Throws c10::Error if a device is or was in use,
// in a bad fork and after shutdown. No other thread may use this backend meanwhile.
void chooseDriverAgain();

} // namespace puone
