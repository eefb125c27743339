// The definition of every op over rows: norm, activation, addition, rotation, attention and argmax
// in the plainest loops, with the arithmetic of kernel_table.h. What that page leaves open:
//  * RMSNorm: with `delta`, x = x + delta is stored first. sum = fold of 16 lanes of fma(x, x,
//  sum);
//    root = sqrt(sum / columns + epsilon); y = (x / root) * gain.
//  * LayerNorm: mean = fold of 16 lanes of x / columns; c = x - mean; root as above over c; with a
//    bias y = fma(c / root, gain, bias), else (c / root) * gain.
//  * Gated activation: y = activation(gate) * up, activations as in reference/math.h.
//  * Rotation of a pair (u, v): u' = fma(u, cosine, -(v * sine)), v' = fma(v, cosine, u * sine).
//    Keys and values are stored after it; F16 rounds to nearest even.
//  * Attention: the running state starts as m = -infinity, l = 0, o = 0. A tile in which the row
//    sees no key is skipped. Merging: m' = max(m, m_tile); a = exp(m - m'), b = exp(m_tile - m');
//    l' = fma(l, a, l_tile * b); o'_d = fma(o_d, a, o_tile_d * b). At the end y_d = o_d / l.
//  * Argmax: starts at index 0 with -infinity, so a row without any larger value (all NaN or
//    -infinity) gives index 0 and -infinity. +0 and -0 are equal.
// Which NaN comes out where a result is NaN is not defined; that it is NaN is.
#ifndef TRIREME_KERNELS_REFERENCE_REFERENCE_ROWS_H_
#define TRIREME_KERNELS_REFERENCE_REFERENCE_ROWS_H_

#include "kernels/execution.h"
#include "kernels/kernel_table.h"

namespace trireme::kernels::reference {

// Entries of the table; contracts and shapes are in kernel_table.h. Attention keeps a row's state
// in the worker's scratch (head_dim up to 64 Ki) and needs no shared scratch.
void RmsNorm(const Execution& execution, const RmsNormArgs& args);
void GatedActivation(const Execution& execution, const GatedActivationArgs& args);
void Add(const Execution& execution, const AddArgs& args);
void LayerNorm(const Execution& execution, const LayerNormArgs& args);
void Adjust(const Execution& execution, const AdjustArgs& args);
void SquareSums(const Execution& execution, const SquareSumsArgs& args);
void ScaleRows(const Execution& execution, const ScaleRowsArgs& args);
void CombineRows(const Execution& execution, const CombineRowsArgs& args);
void RopeAndStore(const Execution& execution, const RopeAndStoreArgs& args);
void Attention(const Execution& execution, const AttentionArgs& args);
void Argmax(const Execution& execution, const ArgmaxArgs& args);

}  // namespace trireme::kernels::reference

#endif  // TRIREME_KERNELS_REFERENCE_REFERENCE_ROWS_H_
