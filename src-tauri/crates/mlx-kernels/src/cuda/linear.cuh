// 16 weights of a row against 16 numbers, and the scale and bias of a group, by which what `dot` adds is put right.
template <int CODE>
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
  static constexpr int BITS = 4;
  __device__ static __forceinline__ void scale(const void* scales, const T* biases, long at, float& scale, float& bias) {
    scale = ponder_float(reinterpret_cast<const T*>(scales)[at]);
    bias = ponder_float(biases[at]) - ABOVE * scale;
  }
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
  static constexpr int BITS = 8;
  __device__ static __forceinline__ void scale(const void* scales, const T* biases, long at, float& scale, float& bias) {
    scale = ponder_float(reinterpret_cast<const T*>(scales)[at]);
    bias = ponder_float(biases[at]);
  }
};
// MXFP4 (OCP Microscaling Formats 1.0): a sign, two bits of exponent and one of mantissa, with a power of two for 32.
struct PonderMxfp4 { static constexpr int CODE = 40; };
template <>
struct PonderWords<PonderMxfp4::CODE> {
  uint2 words;
  __device__ __forceinline__ void load(const unsigned* row, int column) {
    words = __ldg(reinterpret_cast<const uint2*>(row + column / 8));
  }
  // Three bits in the place of a 16 bit float's lowest exponents are the number times 2^-14, zero and one half included.
  __device__ __forceinline__ float dot(const float* x) const {
    float sum = 0;
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const unsigned bits = word == 0 ? words.x : words.y;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned two = bits >> (4 * i);
        const unsigned halves = ((two & 0x00080008u) << 12) | ((two & 0x00070007u) << 9);
        float low, high;
        asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}" : "=f"(low), "=f"(high) : "r"(halves));
        sum += low * x[word * 8 + i];
        sum += high * x[word * 8 + i + 4];
      }
    }
    return sum;
  }
  static constexpr int BITS = 4;
  __device__ static __forceinline__ void scale(const void* scales, const T*, long at, float& scale, float& bias) {
    scale = __uint_as_float(static_cast<unsigned>(reinterpret_cast<const unsigned char*>(scales)[at]) << 23) * 16384.0f;
    bias = 0;
  }
};

struct alignas(16) PonderEight { T e[8]; };

// Sums of 16 of the numbers of a row, in the order of PonderWords.
__device__ __forceinline__ float ponder_read_sixteen(const T* from, float* to) {
  float total = 0;
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const PonderEight eight = *reinterpret_cast<const PonderEight*>(from + part * 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      to[part * 8 + i] = ponder_float(eight.e[i]);
      total += to[part * 8 + i];
    }
  }
  return total;
}

// Products of one row with ROWS rows of a matrix; every lane of the warp gets all of them. `places` are the rows'
// numbers in the matrix.
template <int CODE, int ROWS>
__device__ __forceinline__ void ponder_products(
    const T* x, const unsigned* weight, const void* scales, const T* biases, const long (&places)[ROWS], int inputs, int groups,
    float (&sums)[ROWS]) {
  constexpr int EACH = 16, STEP = 32 * EACH;
  const int lane = threadIdx.x & 31, shift = 31 - __clz(inputs / groups), words = inputs * PonderWords<CODE>::BITS / 32;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) sums[r] = 0;
#pragma unroll 4
  for (int column = lane * EACH; column < inputs; column += STEP) {
    PonderWords<CODE> taken[ROWS];
    float scale[ROWS], bias[ROWS];
    const int group = column >> shift;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      taken[r].load(weight + places[r] * words, column);
      PonderWords<CODE>::scale(scales, biases, places[r] * groups + group, scale[r], bias[r]);
    }
    float value[EACH];
    const float total = ponder_read_sixteen(x + column, value);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sums[r] += scale[r] * taken[r].dot(value) + bias[r] * total;
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) sums[r] = ponder_warp_sum(sums[r]);
}

// The rows of a matrix that a warp multiplies: outputs from `first` on; gated, each with the row that stands `outputs`
// further on.
template <int ROWS, bool GATED>
__device__ __forceinline__ void ponder_places(long base, int first, int outputs, long (&places)[ROWS]) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    places[r] = base + min(first + (GATED ? r / 2 : r), outputs - 1) + (GATED && r % 2 == 1 ? outputs : 0);
  }
}

// One row times a quantized matrix [outputs, inputs]; a warp makes ROWS outputs, half as many if they are gated.
template <int CODE, int ROWS, bool GATED>
__device__ __forceinline__ void ponder_linear(
    const T* x, const unsigned* weight, const T* scales, const T* biases, T* y, int inputs, int outputs, int groups, int curve) {
  constexpr int OWN = GATED ? ROWS / 2 : ROWS;
  const int first = ((blockIdx.x * blockDim.x + threadIdx.x) >> 5) * OWN;
  if (first >= outputs) return;
  long places[ROWS];
  float sums[ROWS];
  ponder_places<ROWS, GATED>(0, first, outputs, places);
  ponder_products<CODE, ROWS>(x, weight, scales, biases, places, inputs, groups, sums);
  if ((threadIdx.x & 31) != 0) return;
#pragma unroll
  for (int o = 0; o < OWN; ++o) {
    if (first + o >= outputs) break;
    y[first + o] = static_cast<T>(GATED ? ponder_gate(ponder_round(sums[2 * o]), ponder_round(sums[2 * o + 1]), curve) : sums[o]);
  }
}
