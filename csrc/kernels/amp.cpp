// SPDX-License-Identifier: BSD-3-Clause
// Gradient scaling of mixed precision.
#include <cmath>
#include <cstdint>

#include "kernels/args/multi_tensor.h"
#include "kernels/families/amp.h"
#include "kernels/map.h"
#include "kernels/types.h"

#ifdef PUONE_SIMT
#include "kernels/simt/amp.h"
#else
#include "kernels/host/amp.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

void ampUnscale(Launch& launch, const puone_amp_unscale_args& args) {
  if (args.dtype == PUONE_FLOAT64) {
    unscaleTensors<double>(launch, args);
  } else {
    unscaleTensors<float>(launch, args);
  }
}

struct UpdateScale {
  PUONE_DEVICE void operator()(int64_t /*i*/) const {
    const float current = load<float>(scale);
    int32_t successes = 0;
    if (load<float>(found_inf) != 0) {
      store(scale, static_cast<float>(current * backoff_factor));
    } else {
      successes = load<int32_t>(growth_tracker) + 1;
      if (successes == growth_interval) {
        const float grown = static_cast<float>(current * growth_factor);
        if (std::isfinite(grown)) store(scale, grown);
        successes = 0;
      }
    }
    store(growth_tracker, successes);
  }

  unsigned char *scale, *growth_tracker, *found_inf;
  double growth_factor, backoff_factor;
  int64_t growth_interval;
};

void ampUpdateScale(Launch& launch, const puone_amp_update_scale_args& args) {
  const UpdateScale update{
      launch.resolve(args.scale),
      launch.resolve(args.growth_tracker),
      launch.resolve(args.found_inf),
      args.growth_factor,
      args.backoff_factor,
      args.growth_interval};
  map(launch, 1, update);
}

} // namespace

PUONE_KERNEL(amp_unscale) = ampUnscale;
PUONE_KERNEL(amp_update_scale) = ampUpdateScale;

} // namespace puone::kernels::PUONE_ISA
