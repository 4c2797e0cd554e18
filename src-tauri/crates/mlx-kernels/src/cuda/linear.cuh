// 16 weights of a row against 16 numbers.
template <int BITS>
struct PonderWords;
template <>
struct PonderWords<4> {
  uint2 words;
  __device__ __forceinline__ void load(const unsigned* row, int column) {
    words = __ldg(reinterpret_cast<const uint2*>(row + column / 8));
  }
  // A number below 16 in the low bits of 128 as a 16 bit float is that much above 128.
  __device__ __forceinline__ float dot(const float* x) const {
    float sum = 0;
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const unsigned bits = word == 0 ? words.x : words.y;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned two = ((bits >> (4 * i)) & 0x000f000fu) | 0x43004300u;
        sum += __uint_as_float(two << 16) * x[word * 8 + i];
        sum += __uint_as_float(two & 0xffff0000u) * x[word * 8 + i + 4];
      }
    }
    return sum;
  }
  static constexpr float ABOVE = 128.0f;
};
template <>
struct PonderWords<8> {
  uint4 words;
  __device__ __forceinline__ void load(const unsigned* row, int column) {
    words = __ldg(reinterpret_cast<const uint4*>(row + column / 4));
  }
  __device__ __forceinline__ float dot(const float* x) const {
    float sum = 0;
    const unsigned all[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += static_cast<float>((all[i / 4] >> (8 * (i % 4))) & 0xffu) * x[i];
    return sum;
  }
  static constexpr float ABOVE = 0.0f;
};

struct alignas(16) PonderEight { T e[8]; };

// One row times a quantized matrix [outputs, inputs]; a warp makes ROWS outputs. Gated, an output is the curve of one
// row's product times the product of the row that stands `outputs` further on.
template <int BITS, int ROWS, bool GATED>
__device__ __forceinline__ void ponder_linear(
    const T* x, const unsigned* weight, const T* scales, const T* biases, T* y, int inputs, int outputs, int groups, bool gelu) {
  constexpr int EACH = 16, STEP = 32 * EACH, OWN = GATED ? ROWS / 2 : ROWS;
  const int lane = threadIdx.x & 31;
  const int first = ((blockIdx.x * blockDim.x + threadIdx.x) >> 5) * OWN;
  if (first >= outputs) return;
  const int shift = 31 - __clz(inputs / groups), words = inputs * BITS / 32;
  const unsigned* rows[ROWS];
  long start[ROWS];
  float sums[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int row = min(first + (GATED ? r / 2 : r), outputs - 1) + (GATED && r % 2 == 1 ? outputs : 0);
    rows[r] = weight + (long)row * words;
    start[r] = (long)row * groups;
    sums[r] = 0;
  }
#pragma unroll 4
  for (int column = lane * EACH; column < inputs; column += STEP) {
    PonderWords<BITS> taken[ROWS];
    float scale[ROWS], bias[ROWS];
    const int group = column >> shift;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      taken[r].load(rows[r], column);
      scale[r] = ponder_float(scales[start[r] + group]);
      bias[r] = ponder_float(biases[start[r] + group]);
    }
    float value[EACH], total = 0;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const PonderEight eight = *reinterpret_cast<const PonderEight*>(x + column + part * 8);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        value[part * 8 + i] = ponder_float(eight.e[i]);
        total += value[part * 8 + i];
      }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      sums[r] += scale[r] * taken[r].dot(value) + (bias[r] - PonderWords<BITS>::ABOVE * scale[r]) * total;
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) sums[r] = ponder_warp_sum(sums[r]);
  if (lane != 0) return;
#pragma unroll
  for (int o = 0; o < OWN; ++o) {
    if (first + o >= outputs) break;
    y[first + o] = static_cast<T>(GATED ? ponder_curve(ponder_round(sums[2 * o]), gelu) * ponder_round(sums[2 * o + 1]) : sums[o]);
  }
}
