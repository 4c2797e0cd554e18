// Many rows times the matrices of a stack: rows that go to the same matrix are multiplied together. A block makes 128
// outputs of up to 32 · PARTS rows on tensor cores. Numbers of both sides come to shared memory 32 at a time, those of the
// matrix as T, which rounds them as a dequantized matrix would be.
constexpr int DEEP = 32, WIDE = 128, ROW_BYTES = DEEP * 2, SENT = 3;

// The place of 16 bytes of a row, so that eight rows at the same place lie in different banks.
__device__ __forceinline__ int ponder_place(int row, int piece) { return row * ROW_BYTES + ((piece ^ (row >> 1)) & 3) * 16; }
__device__ __forceinline__ void ponder_matrices(unsigned from, unsigned (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}

// Subtracts the numbers that a constant's bits stand for.
__device__ __forceinline__ unsigned ponder_less(unsigned two, unsigned constant) { return Pairs::fma(two, Pairs::ONES, constant ^ 0x80008000u); }

// 16 neighboring numbers of a row of a matrix, on their way to shared memory.
template <int CODE>
struct PonderSixteen {
  static constexpr int BITS = CODE == MXFP4 ? 4 : CODE, WORDS = BITS / 2;
  unsigned words[WORDS], scale, bias;

  // `from` is where the numbers are, `group` the place of their scale.
  __device__ __forceinline__ void load(const char* from, const PonderMatrix& matrix, long group) {
    ponder_copy(from, words);
    if constexpr (CODE == MXFP4) {
      scale = reinterpret_cast<const unsigned char*>(matrix.scales)[group];
    } else {
      scale = reinterpret_cast<const unsigned short*>(matrix.scales)[group];
      bias = reinterpret_cast<const unsigned short*>(matrix.biases)[group];
    }
  }
  // The eight numbers from the half of the words on.
  __device__ __forceinline__ uint4 unpacked(int half) const {
    unsigned pairs[4];
    if constexpr (CODE == 8) {
      const unsigned low = Pairs::LOW, high = Pairs::HIGH;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const unsigned word = words[half * 2 + i];
        unsigned two[2];
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const unsigned lower = ponder_less((word >> (8 * odd) & 0x000f000f) | low, low);
          const unsigned upper = ponder_less((word >> (8 * odd + 4) & 0x000f000f) | high, high);
          two[odd] = scaled(Pairs::fma(lower, Pairs::ONES, upper));
        }
        pairs[2 * i] = __byte_perm(two[0], two[1], 0x5410);
        pairs[2 * i + 1] = __byte_perm(two[0], two[1], 0x7632);
      }
    } else {
      unsigned apart[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (CODE == MXFP4) {
          constexpr int PLACE = Pairs::MXFP4_PLACE;
          const unsigned moved = PLACE > 4 * i ? words[half] << (PLACE - 4 * i) : words[half] >> (4 * i - PLACE);
          apart[i] = Pairs::scaled(((words[half] << (12 - 4 * i)) & 0x80008000u) | (moved & Pairs::MXFP4), scale);
        } else {
          apart[i] = scaled(ponder_less((words[half] >> (4 * i) & 0x000f000f) | Pairs::LOW, Pairs::LOW));
        }
      }
      pairs[0] = __byte_perm(apart[0], apart[1], 0x5410), pairs[1] = __byte_perm(apart[2], apart[3], 0x5410);
      pairs[2] = __byte_perm(apart[0], apart[1], 0x7632), pairs[3] = __byte_perm(apart[2], apart[3], 0x7632);
    }
    return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
  __device__ __forceinline__ unsigned scaled(unsigned two) const { return Pairs::fma(two, scale * 0x10001u, bias * 0x10001u); }
};

// The rows of a block: which matrix they go to, how many there are, and the pair of each in the order.
struct PonderRows {
  const unsigned* order;
  int matrix, first, count;
  __device__ __forceinline__ int operator[](int row) const {
    return order[first + min(row, count - 1)];
  }
};

template <int CODE, int PARTS>
__device__ __forceinline__ void ponder_grouped(
    const T* x, long next_row, int of_row, const PonderMatrix& matrix, const T* bias, int outputs, const PonderRows& rows, T* y, char* room,
    int shift, int gated, int curve) {
  typedef PonderSixteen<CODE> Sixteen;
  constexpr int HIGH = 32 * PARTS, X_BYTES = HIGH * ROW_BYTES, W_BYTES = WIDE * ROW_BYTES, PIECES = (HIGH * 4 + 255) / 256;
  const int lane = threadIdx.x & 31, warp = ponder_warp(), down = warp >> 2, across = warp & 3, steps = matrix.inputs / DEEP;
  const int half = outputs >> gated, wide = WIDE >> gated, first = min(static_cast<int>(blockIdx.x) * wide, half - wide);
  char* const of_x = room;
  char* const of_matrix = room + SENT * X_BYTES;

  const char* from[PIECES];
#pragma unroll
  for (int i = 0; i < PIECES; ++i) {
    const int row = min(static_cast<int>(threadIdx.x) + i * 256, HIGH * 4 - 1) >> 2;
    from[i] = reinterpret_cast<const char*>(x + static_cast<long>(rows[row] / of_row) * next_row) + (threadIdx.x & 3) * 16;
  }
  const auto send = [&](int step) {
    if (step < steps) {
      char* const to = of_x + step % SENT * X_BYTES;
#pragma unroll
      for (int i = 0; i < PIECES; ++i) {
        const int piece = threadIdx.x + i * 256;
        if (HIGH * 4 % 256 == 0 || piece < HIGH * 4)
          ponder_send<16>(to + ponder_place(piece >> 2, piece & 3), from[i] + static_cast<long>(step) * ROW_BYTES);
      }
    }
    ponder_commit();
  };
  // With both halves of the outputs, a warp has 16 of each.
  const int own = threadIdx.x >> 1, part = threadIdx.x & 1, of_half = (own >> 5) * 16 + (own & 15);
  const int output = gated ? (own & 16 ? half : 0) + first + of_half : first + own;
  const long matrix_row = static_cast<long>(rows.matrix) * outputs + output;
  const char* const weight = reinterpret_cast<const char*>(matrix.weight) + matrix_row * (matrix.inputs / 8 * Sixteen::BITS) + part * 2 * Sixteen::BITS;
  const auto load = [&](int step, Sixteen& to) {
    if (step < steps)
      to.load(weight + static_cast<long>(step) * (DEEP / 8 * Sixteen::BITS), matrix, matrix_row * matrix.groups + ((step * 2 + part) >> shift));
  };
  const auto keep = [&](int step, const Sixteen& numbers) {
    char* const to = of_matrix + step % 2 * W_BYTES;
#pragma unroll
    for (int i = 0; i < 2; ++i) *reinterpret_cast<uint4*>(to + ponder_place(own, part * 2 + i)) = numbers.unpacked(i);
  };

  float sums[PARTS][4][4] = {};
  const auto turn = [&](int step, Sixteen& later, const Sixteen& next) {
    ponder_arrived<SENT - 2>();
    __syncthreads();
    send(step + 2);
    load(step + 2, later);
    const unsigned from_x = ponder_shared(of_x + step % SENT * X_BYTES), from_matrix = ponder_shared(of_matrix + step % 2 * W_BYTES);
#pragma unroll
    for (int k = 0; k < DEEP / 16; ++k) {
      unsigned theirs[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        ponder_matrices(from_matrix + ponder_place(across * 32 + i * 16 + (lane & 7) + (lane >> 4) * 8, k * 2 + (lane >> 3 & 1)), theirs[i]);
#pragma unroll
      for (int m = 0; m < PARTS; ++m) {
        unsigned ours[4];
        ponder_matrices(from_x + ponder_place((down * PARTS + m) * 16 + (lane & 15), k * 2 + (lane >> 4)), ours);
#pragma unroll
        for (int n = 0; n < 4; ++n)
          Pairs::multiply(sums[m][n], ours[0], ours[1], ours[2], ours[3], theirs[n >> 1][n % 2 * 2], theirs[n >> 1][n % 2 * 2 + 1]);
      }
    }
    if (step + 1 < steps) keep(step + 1, next);
  };
  // Those of even steps and those of odd ones; there are as many.
  Sixteen even, odd;
  load(0, even);
  load(1, odd);
  send(0);
  send(1);
  keep(0, even);
#pragma unroll 1
  for (int step = 0; step < steps; step += 2) {
    turn(step, even, odd);
    turn(step + 1, odd, even);
  }

  const T* const own_bias = bias != nullptr ? bias + static_cast<long>(rows.matrix) * outputs : nullptr;
  const auto finish = [&](float sum, int output) {
    if constexpr (CODE == MXFP4) sum *= Pairs::MXFP4_UNIT;
    sum = ponder_round(sum);
    return own_bias != nullptr ? ponder_round(sum + ponder_float(own_bias[output])) : sum;
  };
#pragma unroll
  for (int m = 0; m < PARTS; ++m) {
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const int row = (down * PARTS + m) * 16 + lower * 8 + (lane >> 2);
      if (row >= rows.count) continue;
      T* const to = y + static_cast<long>(rows[row]) * half;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (gated && n >= 2) continue;
        T two[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int column = first + (gated ? across * 16 : across * 32) + n * 8 + (lane & 3) * 2 + i;
          float made = finish(sums[m][n][lower * 2 + i], column);
          if (gated) made = ponder_gate(made, finish(sums[m][(n + 2) & 3][lower * 2 + i], half + column), curve);
          two[i] = static_cast<T>(made);
        }
        const int column = first + (gated ? across * 16 : across * 32) + n * 8 + (lane & 3) * 2;
        *reinterpret_cast<unsigned*>(to + column) = two[0].bits | static_cast<unsigned>(two[1].bits) << 16;
      }
    }
  }
}

template <int PARTS, class Shapes, class Steps>
__device__ __forceinline__ void ponder_groups(
    const Shapes& p_shape, const void* x, const Shapes& x_shape, const Steps& x_strides, const void* weight, const void* scales,
    const Shapes& scales_shape, const void* biases, const void* bias, const void* order, const void* tiles, void* result) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  __shared__ alignas(16) char room[SENT * 32 * PARTS * ROW_BYTES + 2 * WIDE * ROW_BYTES];
  // Groups of numbers are those of two, four or eight pieces of 16.
  const int shift = number(1), gated = number(2), curve = number(3), of_row = number(5);
  const int outputs = scales_shape[1], groups = scales_shape[2];
  const unsigned* const tile = reinterpret_cast<const unsigned*>(tiles) + blockIdx.y * 3;
  const PonderRows rows = {
      reinterpret_cast<const unsigned*>(order), static_cast<int>(tile[0]), static_cast<int>(tile[1]), static_cast<int>(tile[2])};
  if (rows.count == 0) return;
  const PonderMatrix matrix = {reinterpret_cast<const unsigned*>(weight), scales, biases, x_shape[1], groups};
  const T* const own_bias = number(4) ? reinterpret_cast<const T*>(bias) : nullptr;
  const T* const from = reinterpret_cast<const T*>(x);
  T* const y = reinterpret_cast<T*>(result);
  switch (number(0)) {
    case 0: ponder_grouped<4, PARTS>(from, x_strides[0], of_row, matrix, own_bias, outputs, rows, y, room, shift, gated, curve); break;
    case 1: ponder_grouped<8, PARTS>(from, x_strides[0], of_row, matrix, own_bias, outputs, rows, y, room, shift, gated, curve); break;
    case 2: ponder_grouped<MXFP4, PARTS>(from, x_strides[0], of_row, matrix, own_bias, outputs, rows, y, room, shift, gated, curve); break;
  }
}
