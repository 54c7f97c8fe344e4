#pragma once

#include "base/check.h"
#include "base/status.h"
#include "kernels/hc_pre/hc_pre.h"

namespace tandem::cuda {

/// Returns fn.operator()<num_streams>(). num_streams is 1 to kHcStreamsMax.
template <class Fn>
Status with_num_streams(int64_t num_streams, Fn&& fn) {
  static_assert(kHcStreamsMax == 8);
  switch (num_streams) {
    case 1: return fn.template operator()<1>();
    case 2: return fn.template operator()<2>();
    case 3: return fn.template operator()<3>();
    case 4: return fn.template operator()<4>();
    case 5: return fn.template operator()<5>();
    case 6: return fn.template operator()<6>();
    case 7: return fn.template operator()<7>();
    case 8: return fn.template operator()<8>();
    default: break;
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem::cuda
