// How a row is made that is read on the way to a matrix: (h + norm(x)·inner)·factor, then normed by `outer`. Null
// pointers leave their part out.
struct PonderRow { const T *h, *x, *inner, *factor, *outer; float eps; };

__device__ __forceinline__ void ponder_sixteen(const T* from, float* to) {
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const PonderEight eight = *reinterpret_cast<const PonderEight*>(from + part * 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) to[part * 8 + i] = ponder_float(eight.e[i]);
  }
}

// The row times a quantized matrix, as ponder_linear; the first block writes the row before its last norm to `sum`.
// With `other`, outputs go through the curve and are multiplied by it. Every block computes the row again, so that none
// waits for another. The row lies in shared memory so that neighboring lanes read neighboring bytes.
template <int BITS, int ROWS, bool GATED>
__device__ __forceinline__ void ponder_read(
    PonderRow row, const unsigned* weight, const T* scales, const T* biases, const T* other, T* y, T* sum, T* staged, float* places,
    int inputs, int outputs, int groups, int curve) {
  constexpr int EACH = 16, STEP = 32 * EACH, OWN = GATED ? ROWS / 2 : ROWS;
  const int lane = threadIdx.x & 31, warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, first = warp * OWN;
  const int shift = 31 - __clz(inputs / groups), words = inputs * BITS / 32;
  const float times = row.factor != nullptr ? ponder_float(row.factor[0]) : 1.0f;
  float inner_scale = 0;
  if (row.inner != nullptr) {
    float squares = 0;
    for (int column = threadIdx.x * 8; column < inputs; column += blockDim.x * 8) {
      const PonderEight x = *reinterpret_cast<const PonderEight*>(row.x + column);
#pragma unroll
      for (int i = 0; i < 8; ++i) squares += ponder_float(x.e[i]) * ponder_float(x.e[i]);
    }
    inner_scale = rsqrtf(ponder_block_sum(squares, places) / inputs + row.eps);
  }
  float squares = 0;
  for (int column = threadIdx.x * 8; column < inputs; column += blockDim.x * 8) {
    const PonderEight h = *reinterpret_cast<const PonderEight*>(row.h + column);
    const PonderEight x = *reinterpret_cast<const PonderEight*>(row.x + column);
    PonderEight inner = h, outer = h, kept, read;
    if (row.inner != nullptr) inner = *reinterpret_cast<const PonderEight*>(row.inner + column);
    if (row.outer != nullptr) outer = *reinterpret_cast<const PonderEight*>(row.outer + column);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float part = ponder_float(x.e[i]);
      if (row.inner != nullptr) part = ponder_round(part * inner_scale * ponder_float(inner.e[i]));
      kept.e[i] = static_cast<T>(ponder_round(ponder_float(h.e[i]) + part) * times);
      const float value = ponder_float(kept.e[i]);
      squares += value * value;
      read.e[i] = row.outer != nullptr ? static_cast<T>(value * ponder_float(outer.e[i])) : kept.e[i];
    }
    if (blockIdx.x == 0) *reinterpret_cast<PonderEight*>(sum + column) = kept;
    const int place = (column / STEP) * STEP + (column / 8 % 2) * (STEP / 2) + (column % STEP / EACH) * 8;
    *reinterpret_cast<PonderEight*>(staged + place) = read;
  }
  const float all_squares = ponder_block_sum(squares, places + 32);
  const float scale_of_row = row.outer != nullptr ? rsqrtf(all_squares / inputs + row.eps) : 1.0f;
  if (first >= outputs) return;
  const unsigned* rows[ROWS];
  const T *row_scales[ROWS], *row_biases[ROWS];
  float sums[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int place = min(first + (GATED ? r / 2 : r), outputs - 1) + (GATED && r % 2 == 1 ? outputs : 0);
    rows[r] = weight + (long)place * words;
    row_scales[r] = scales + (long)place * groups;
    row_biases[r] = biases + (long)place * groups;
    sums[r] = 0;
  }
#pragma unroll 2
  for (int column = lane * EACH; column < inputs; column += STEP) {
    PonderWords<BITS> taken[ROWS];
    float scale[ROWS], bias[ROWS];
    const int group = column >> shift;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      taken[r].load(rows[r], column);
      scale[r] = ponder_float(row_scales[r][group]);
      bias[r] = ponder_float(row_biases[r][group]);
    }
    float value[EACH], total = 0;
    const T* mine = staged + (column / STEP) * STEP + lane * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const PonderEight eight = *reinterpret_cast<const PonderEight*>(mine + half * (STEP / 2));
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        value[half * 8 + i] = ponder_float(eight.e[i]);
        total += value[half * 8 + i];
      }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      sums[r] += scale[r] * taken[r].dot(value) + (bias[r] - PonderWords<BITS>::ABOVE * scale[r]) * total;
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) sums[r] = ponder_round(ponder_warp_sum(sums[r]) * scale_of_row);
  if (lane != 0) return;
#pragma unroll
  for (int o = 0; o < OWN; ++o) {
    if (first + o >= outputs) break;
    float made = GATED ? ponder_gate(sums[2 * o], sums[2 * o + 1], curve) : sums[o];
    if (other != nullptr) made = ponder_gate(made, ponder_float(other[first + o]), curve);
    y[first + o] = static_cast<T>(made);
  }
}

template <class Shapes>
__device__ __forceinline__ void ponder_reading(
    const Shapes& p_shape, const void* h, const Shapes& h_shape, const void* x, const void* inner, const void* factor, const void* outer,
    const void* weight, const void* scales, const Shapes& scales_shape, const void* biases, const void* other, void* y, void* sum) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  const auto maybe = [&](int place, const void* pointer) { return number(place) ? reinterpret_cast<const T*>(pointer) : nullptr; };
  const PonderRow row = {reinterpret_cast<const T*>(h), reinterpret_cast<const T*>(x), maybe(2, inner), maybe(3, factor), maybe(4, outer),
      __int_as_float(number(7))};
  const unsigned* weight_ = reinterpret_cast<const unsigned*>(weight);
  const T* scales_ = reinterpret_cast<const T*>(scales);
  const T* biases_ = reinterpret_cast<const T*>(biases);
  const T* other_ = maybe(5, other);
  T* y_ = reinterpret_cast<T*>(y);
  T* sum_ = reinterpret_cast<T*>(sum);
  const int inputs = h_shape[1], rows = scales_shape[0], groups = scales_shape[1];
  const int curve = number(6);
  // Whole steps of a warp, up to 40 KiB.
  __shared__ alignas(16) T staged[20480 / sizeof(T) * 2];
  __shared__ float places[64];
  switch (number(1)) {
    case 0: ponder_read<4, 2, false>(row, weight_, scales_, biases_, other_, y_, sum_, staged, places, inputs, rows, groups, curve); break;
    case 1: ponder_read<4, 4, false>(row, weight_, scales_, biases_, other_, y_, sum_, staged, places, inputs, rows, groups, curve); break;
    case 2: ponder_read<4, 4, true>(row, weight_, scales_, biases_, other_, y_, sum_, staged, places, inputs, rows / 2, groups, curve); break;
    case 3: ponder_read<8, 2, false>(row, weight_, scales_, biases_, other_, y_, sum_, staged, places, inputs, rows, groups, curve); break;
    case 4: ponder_read<8, 4, true>(row, weight_, scales_, biases_, other_, y_, sum_, staged, places, inputs, rows / 2, groups, curve); break;
  }
}
