#pragma once

#include "base/status.h"
#include "model/formats/dtype.h"

namespace tandem::cuda {

/// Returns fn.operator()<dtype>() for a type that weights can have, kInvalidArgument for another.
template <class Fn>
Status with_weight_type(const char* op, DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kF32: return fn.template operator()<DType::kF32>();
    case DType::kF16: return fn.template operator()<DType::kF16>();
    case DType::kBF16: return fn.template operator()<DType::kBF16>();
    case DType::kQ8_0: return fn.template operator()<DType::kQ8_0>();
    case DType::kQ2_K: return fn.template operator()<DType::kQ2_K>();
    case DType::kQ4_K: return fn.template operator()<DType::kQ4_K>();
    case DType::kQ6_K: return fn.template operator()<DType::kQ6_K>();
    case DType::kIQ2_XXS: return fn.template operator()<DType::kIQ2_XXS>();
    case DType::kMXFP4: return fn.template operator()<DType::kMXFP4>();
    case DType::kI32: break;
  }
  return invalid_argument(str_cat(op, ": the weight is I32"));
}

}  // namespace tandem::cuda
