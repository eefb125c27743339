// From a WeightFormat to its storage struct: the one list of them. Code over all formats is a
// template that VisitFormat calls, or an array that is made from AllFormats.
#ifndef TRIREME_KERNELS_FORMATS_ALL_FORMATS_H_
#define TRIREME_KERNELS_FORMATS_ALL_FORMATS_H_

#include <cstdint>

#include "kernels/formats/bf16.h"
#include "kernels/formats/e4m3_e5m2.h"
#include "kernels/formats/f16.h"
#include "kernels/formats/f32.h"
#include "kernels/formats/iq1_m.h"
#include "kernels/formats/iq1_s.h"
#include "kernels/formats/iq2_s.h"
#include "kernels/formats/iq2_xs.h"
#include "kernels/formats/iq2_xxs.h"
#include "kernels/formats/iq3_s.h"
#include "kernels/formats/iq3_xxs.h"
#include "kernels/formats/iq4_nl.h"
#include "kernels/formats/iq4_xs.h"
#include "kernels/formats/mxfp4.h"
#include "kernels/formats/mxfp8.h"
#include "kernels/formats/nf4_fp4.h"
#include "kernels/formats/nvfp4.h"
#include "kernels/formats/nvfp4_scaled.h"
#include "kernels/formats/q2_k.h"
#include "kernels/formats/q3_k.h"
#include "kernels/formats/q4_0.h"
#include "kernels/formats/q4_1.h"
#include "kernels/formats/q4_k.h"
#include "kernels/formats/q5_0.h"
#include "kernels/formats/q5_1.h"
#include "kernels/formats/q5_k.h"
#include "kernels/formats/q6_k.h"
#include "kernels/formats/q8_0.h"
#include "kernels/formats/tq1_0.h"
#include "kernels/formats/tq2_0.h"
#include "kernels/formats/weight_format.h"

namespace trireme::kernels {

// All storage structs, in the order of WeightFormat.
template <typename... Formats>
struct FormatList {};
using AllFormats =
    FormatList<WeightF32, WeightF16, WeightBF16, WeightQ8_0, WeightQ4_0, WeightQ4_1, WeightQ5_0,
               WeightQ5_1, WeightQ4_K, WeightQ5_K, WeightQ6_K, WeightQ2_K, WeightQ3_K, WeightIQ4_NL,
               WeightIQ4_XS, WeightIQ3_XXS, WeightIQ3_S, WeightIQ2_XXS, WeightIQ2_XS, WeightIQ2_S,
               WeightIQ1_S, WeightIQ1_M, WeightTQ1_0, WeightTQ2_0, WeightMXFP4, WeightNVFP4,
               WeightF8_E4M3, WeightF8_E5M2, WeightMXFP8, WeightNF4, WeightFP4, WeightNVFP4_MUL,
               WeightNVFP4_DIV>;

template <typename... Formats>
constexpr bool IsInOrder(FormatList<Formats...> /*list*/) {
  int index = 0;
  return sizeof...(Formats) == kWeightFormatCount &&
         (... && (static_cast<int>(Formats::kFormat) == index++));
}
static_assert(IsInOrder(AllFormats{}));

template <typename Visitor, typename First, typename... Rest>
decltype(auto) VisitFormatIn(FormatList<First, Rest...> /*list*/, WeightFormat format,
                             Visitor&& visitor) {
  if constexpr (sizeof...(Rest) > 0) {
    if (format != First::kFormat) {
      return VisitFormatIn(FormatList<Rest...>{}, format, visitor);
    }
  }
  return visitor(First{});
}

// Calls visitor(StorageStruct{}) for the format's struct; the argument carries the type only.
template <typename Visitor>
decltype(auto) VisitFormat(WeightFormat format, Visitor&& visitor) {
  return VisitFormatIn(AllFormats{}, format, visitor);
}

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_ALL_FORMATS_H_
