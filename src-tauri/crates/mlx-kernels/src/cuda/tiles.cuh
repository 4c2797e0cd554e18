// Products on tensor cores. A warp multiplies tiles of 16 rows of a matrix with up to 8 · PARTS rows of x: the tiles are
// the first operand of mma.m16n8k16 and are unpacked in registers, x is the second one. A sum may be taken in any order
// if both operands agree, so each of the four lanes that share a row of a tile takes neighboring numbers of it.

// Two numbers in a word. One below 16 in the low bits of LOW is that much above ABOVE; in those of HIGH, all is 16 times
// as much.
template <class> struct PonderPairs;
template <>
struct PonderPairs<BFloat16> {
  static constexpr unsigned ONES = 0x3f803f80, LOW = 0x43004300, HIGH = 0x45004500, MXFP4 = 0x01c001c0;
  static constexpr float ABOVE = 128.0f, MXFP4_UNIT = 4294967296.0f;
  // Two numbers of MXFP4 whose bits stand for the lowest exponents, by their scale, which is a power of two. They are
  // kept 2^-32 too small, because the greatest of scales would not fit.
  static constexpr int MXFP4_PLACE = 6;
  __device__ static __forceinline__ unsigned scaled(unsigned two, unsigned scale) {
    const unsigned factor = min(scale + 94, 254u) * 0x00800080u;
    return fma(two, factor, 0x80008000u);
  }
  // Two numbers at once, each rounded once.
  __device__ static __forceinline__ unsigned fma(unsigned a, unsigned b, unsigned c) {
    unsigned made;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(made) : "r"(a), "r"(b), "r"(c));
    return made;
  }
  __device__ static __forceinline__ void multiply(
      float (&sum)[4], unsigned a, unsigned b, unsigned c, unsigned d, unsigned x, unsigned y) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a), "r"(b), "r"(c), "r"(d), "r"(x), "r"(y));
  }
};
template <>
struct PonderPairs<Float16> {
  static constexpr unsigned ONES = 0x3c003c00, LOW = 0x64006400, HIGH = 0x74007400, MXFP4 = 0x0e000e00;
  static constexpr float ABOVE = 1024.0f, MXFP4_UNIT = 1.0f;
  static constexpr int MXFP4_PLACE = 9;
  __device__ static __forceinline__ unsigned scaled(unsigned two, unsigned scale) {
    const unsigned factor = min(max(static_cast<int>(scale) - 98, 0), 30) * 0x04000400u;
    return fma(two, factor, 0x80008000u);
  }
  // Two numbers at once, each rounded once.
  __device__ static __forceinline__ unsigned fma(unsigned a, unsigned b, unsigned c) {
    unsigned made;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(made) : "r"(a), "r"(b), "r"(c));
    return made;
  }
  __device__ static __forceinline__ void multiply(
      float (&sum)[4], unsigned a, unsigned b, unsigned c, unsigned d, unsigned x, unsigned y) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a), "r"(b), "r"(c), "r"(d), "r"(x), "r"(y));
  }
};
typedef PonderPairs<T> Pairs;

struct alignas(16) PonderEight { T e[8]; };

// The code of MXFP4 (OCP Microscaling Formats 1.0): a sign, two bits of exponent and one of mantissa, with a power of two
// for 32. The codes of others are their bits; with 16 numbers are as those of x.
constexpr int MXFP4 = 40;

// A matrix [outputs, inputs].
struct PonderMatrix {
  const unsigned* weight;
  const void *scales, *biases;
  int inputs, groups;
};

// Tiles are on their way to a warp in slots of 128 bytes of each row, of which up to DEPTH are under way.
constexpr int DEPTH = 2, SLOT = 16 * 128;
// The shared memory of a block, and the most warps of one.
constexpr int ROOM = 48 * 1024 - 256, MAX_WARPS = 12;

__device__ __forceinline__ unsigned ponder_shared(const void* place) { return static_cast<unsigned>(__cvta_generic_to_shared(place)); }
template <int BYTES>
__device__ __forceinline__ void ponder_send(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(ponder_shared(to)), "l"(from), "n"(BYTES) : "memory");
}
// Ends a part of what is sent; waits until all but LATER parts are there.
__device__ __forceinline__ void ponder_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LATER>
__device__ __forceinline__ void ponder_arrived() { asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory"); }

template <int WORDS>
__device__ __forceinline__ void ponder_copy(const char* from, unsigned (&to)[WORDS]) {
  if constexpr (WORDS == 1) {
    to[0] = *reinterpret_cast<const unsigned*>(from);
  } else if constexpr (WORDS == 2) {
    const uint2 two = *reinterpret_cast<const uint2*>(from);
    to[0] = two.x, to[1] = two.y;
  } else {
    const uint4 four = *reinterpret_cast<const uint4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  }
}

// A tile of a warp. A step is a few numbers of each row, of GROUPS groups.
template <int CODE, int GROUPS>
struct PonderTile {
  static constexpr bool AFFINE = CODE == 4 || CODE == 8;
  static constexpr int BITS = CODE == MXFP4 ? 4 : CODE, STEP = CODE == 16 ? 32 : 64, LINE = STEP * BITS / 8;
  // Numbers of a group that a lane takes, and the words that they are in.
  static constexpr int EACH = STEP / 4 / GROUPS, WORDS = EACH * BITS / 32;
  // Words that four pairs come from, and how many words of x belong to them.
  static constexpr int UNIT = CODE == 16 ? 4 : 1, OTHERS = CODE == 8 ? 2 : 4;
  // Bytes of a scale, of which a lane reads those of one group, or of two of MXFP4.
  static constexpr int SCALE = CODE == 16 ? 0 : CODE == MXFP4 ? 1 : 2;

  const char* weight;
  char* ring;
  const char* scales;
  int row_bytes, groups, own_scales, biases, shift, warp, stride;
  unsigned low, high;
  unsigned own[2];

  // Bytes of the scales and biases of the tiles of a block.
  __device__ static __forceinline__ int scale_bytes(const PonderMatrix& matrix, int tiles) {
    return tiles * 16 * matrix.groups * SCALE * (AFFINE ? 2 : 1);
  }
  // Sends the scales of 16 rows to their place among those of `all` tiles. All threads take part.
  __device__ static __forceinline__ void send_scales(const PonderMatrix& matrix, long row, char* to, int tile, int all) {
    if constexpr (CODE != 16) {
      const int row_scales = matrix.groups * SCALE, bytes = 16 * row_scales;
      const char* from = reinterpret_cast<const char*>(matrix.scales) + row * row_scales;
      const char* from_biases = reinterpret_cast<const char*>(matrix.biases) + row * row_scales;
#pragma unroll 1
      for (int i = threadIdx.x * 8; i < bytes; i += blockDim.x * 8) {
        ponder_send<8>(to + tile * bytes + i, from + i);
        if constexpr (AFFINE) ponder_send<8>(to + (all + tile) * bytes + i, from_biases + i);
      }
    }
  }
  // Bytes of the ring of a warp, one of `warps` that share the inputs.
  __device__ static __forceinline__ int ring_bytes(const PonderMatrix& matrix, int warps) {
    return (matrix.inputs / 8 * BITS <= warps * 128 ? 1 : DEPTH) * SLOT;
  }
  // A tile of which the warp takes each `warps`th slot from `warp` on; among those of the block, `all`, it is `tile`.
  __device__ __forceinline__ PonderTile(const PonderMatrix& matrix, char* ring, int tile, int all, int shift, int warp, int warps)
      : ring(ring), groups(matrix.groups), shift(shift), warp(warp), stride(warps), low(unknown(Pairs::LOW)), high(unknown(Pairs::HIGH)) {
    row_bytes = matrix.inputs / 8 * BITS;
    own_scales = (tile * 16 + (threadIdx.x & 31) / 4) * groups * SCALE;
    biases = all * 16 * groups * SCALE;
  }
  // Sends what is first needed of the tile from a row on; the scales of all come to a place of the block.
  __device__ __forceinline__ void start(const PonderMatrix& matrix, long row, const char* all_scales) {
    const int lane = threadIdx.x & 31;
    weight = reinterpret_cast<const char*>(matrix.weight) + (row + lane / 8) * row_bytes + lane % 8 * 16;
    scales = all_scales + own_scales;
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) send(warp + i * stride, i);
  }
  // Sends a slot on its way, as far as there is one. Pieces of 16 bytes change places, so that the lanes that read
  // them at once find them in different banks.
  __device__ __forceinline__ void send(int slot, int place) {
    const int lane = threadIdx.x & 31, piece = lane % 8 ^ (lane / 8 * (LINE / 16) & 7);
    if (slot * 128 + lane % 8 * 16 < row_bytes) {
      const unsigned to = ponder_shared(ring + place * SLOT) + lane / 8 * 128 + piece * 16;
      const char* from = weight + slot * 128;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i * 4 * 128), "l"(from + i * 4l * row_bytes) : "memory");
    }
    ponder_commit();
  }
  // Takes the scales of four groups of affine numbers, or those of eight of MXFP4.
  __device__ __forceinline__ void take_scales(int group) {
    if constexpr (CODE == 16) return;
    group += threadIdx.x & 3;
    const int at = AFFINE ? min(group >> shift, groups - 1) * 2 : min(2 * group, groups - 2);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const char* from = scales + half * 8 * groups * SCALE + at;
      own[half] = *reinterpret_cast<const unsigned short*>(from);
      if constexpr (AFFINE) own[half] |= *reinterpret_cast<const unsigned short*>(from + biases) << 16;
    }
  }
  // Bits of a word in those of `low`; one instruction, for which the compiler must not know both constants.
  __device__ static __forceinline__ unsigned put(unsigned word, unsigned low) {
    unsigned made;
    asm("lop3.b32 %0, %1, 0x000f000f, %2, 0xea;" : "=r"(made) : "r"(word), "r"(low));
    return made;
  }
  __device__ static __forceinline__ unsigned unknown(unsigned constant) {
    asm("mov.b32 %0, %0;" : "+r"(constant));
    return constant;
  }
  // Four pairs of a unit of words of a row.
  __device__ __forceinline__ void unpack(const unsigned* words, unsigned scale, unsigned (&pairs)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (AFFINE) {
        pairs[i] = put(words[0] >> (4 * i), CODE == 8 && i % 2 == 1 ? high : low);
      } else if constexpr (CODE == MXFP4) {
        constexpr int PLACE = Pairs::MXFP4_PLACE;
        const unsigned moved = PLACE > 4 * i ? words[0] << (PLACE - 4 * i) : words[0] >> (4 * i - PLACE);
        pairs[i] = Pairs::scaled(((words[0] << (12 - 4 * i)) & 0x80008000u) | (moved & Pairs::MXFP4), scale);
      } else {
        pairs[i] = words[i];
      }
    }
  }
  // The pairs of x that belong to those of a unit.
  __device__ static __forceinline__ void order(const unsigned* x, unsigned (&pairs)[4]) {
    if constexpr (CODE == 16) {
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[i] = x[i];
    } else {
      // Of eight numbers those that are four apart; of four those that are two apart, for both halves of a weight.
      pairs[0] = __byte_perm(x[0], x[OTHERS / 2], 0x5410);
      const unsigned high = __byte_perm(x[0], x[OTHERS / 2], 0x7632);
      pairs[1] = CODE == 8 ? pairs[0] : high;
      pairs[2] = CODE == 8 ? high : __byte_perm(x[1], x[3], 0x5410);
      pairs[3] = CODE == 8 ? high : __byte_perm(x[1], x[3], 0x7632);
    }
  }
  // Adds the products of a group's words with numbers of x to `sums`; the scales are those of the lane `place`.
  __device__ __forceinline__ void multiply(
      const unsigned (&taken)[2][WORDS], int place, const unsigned (&x)[EACH / 2], float (&sums)[4]) {
    float made[4] = {}, total[4] = {};
    unsigned scale[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (CODE != 16) scale[half] = __shfl_sync(0xffffffffu, own[half], place, 4);
      if constexpr (CODE == MXFP4) scale[half] = scale[half] >> (threadIdx.x & 2) * 4 & 0xff;
    }
#pragma unroll
    for (int unit = 0; unit < WORDS / UNIT; ++unit) {
      unsigned other[4], upper[4], lower[4];
      order(x + unit * OTHERS, other);
      unpack(taken[0] + unit * UNIT, scale[0], upper);
      unpack(taken[1] + unit * UNIT, scale[1], lower);
      float(&to)[4] = AFFINE ? made : sums;
#pragma unroll
      for (int i = 0; i < 4; i += 2)
        Pairs::multiply(to, upper[i], lower[i], upper[i + 1], lower[i + 1], other[i], other[i + 1]);
      // With ones for the tile the sums of x come to where the products are. With 8 bits, x is there twice.
      constexpr unsigned ONES = Pairs::ONES;
      if constexpr (CODE == 8) Pairs::multiply(total, ONES, ONES, ONES, ONES, other[0], other[2]);
      if constexpr (CODE == 4) {
        Pairs::multiply(total, ONES, ONES, ONES, ONES, other[0], other[1]);
        Pairs::multiply(total, ONES, ONES, ONES, ONES, other[2], other[3]);
      }
    }
    if constexpr (AFFINE) {
      constexpr float ABOVE = (CODE == 8 ? 17 : 1) * Pairs::ABOVE;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        T scale_bits, bias_bits;
        scale_bits.bits = scale[i / 2];
        bias_bits.bits = scale[i / 2] >> 16;
        const float factor = ponder_float(scale_bits), shifted = ponder_float(bias_bits) - ABOVE * factor;
        sums[i] = fmaf(factor, made[i], fmaf(shifted, total[i], sums[i]));
      }
    }
  }
  // Adds the products of the warp's slots with rows of x, of each part the one that a lane points to. What is needed next
  // is read meanwhile.
  template <int PARTS>
  __device__ __forceinline__ void run(const T* const (&rows)[PARTS], float (&sums)[PARTS][4]) {
    constexpr int STEPS = 128 / LINE;
    const int lane = threadIdx.x & 31, steps = row_bytes / LINE;
    const char* const from = ring + lane / 4 * 128 + lane % 4 * WORDS * 4;
    const int swapped = (lane / 4 * (LINE / 16) & 7) * 16;
    unsigned x[2][EACH / 2];
    const auto read = [&](int group, int part, unsigned(&to)[EACH / 2]) {
#pragma unroll
      for (int i = 0; i < EACH / 8; ++i) {
        const uint4 eight = *reinterpret_cast<const uint4*>(rows[part] + (group * 4 + lane % 4) * EACH + i * 8);
        to[4 * i] = eight.x, to[4 * i + 1] = eight.y, to[4 * i + 2] = eight.z, to[4 * i + 3] = eight.w;
      }
    };
    // So that what was read before need not be kept where nothing more is read.
    const auto forget = [](unsigned(&numbers)[EACH / 2]) {
#pragma unroll
      for (int i = 0; i < EACH / 2; ++i) asm("" : "=r"(numbers[i]));
    };
    int place = 0;
    if (warp * STEPS < steps) read(warp * STEPS * GROUPS, 0, x[0]);
#pragma unroll 1
    for (int slot = warp; slot * STEPS < steps; slot += stride, place = (place + 1) % DEPTH) {
      ponder_arrived<DEPTH - 1>();
      __syncwarp();
#pragma unroll
      for (int step = 0; step < STEPS; ++step) {
        if (step > 0 && slot * STEPS + step >= steps) break;
        const char* line = from + place * SLOT + (step * LINE ^ swapped);
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) {
          const int number = step * GROUPS + group;
          if (number % 4 == 0) take_scales(slot * STEPS * GROUPS + number);
          unsigned taken[2][WORDS];
#pragma unroll
          for (int half = 0; half < 2; ++half) ponder_copy(line + half * 8 * 128 + group * (LINE / GROUPS), taken[half]);
#pragma unroll
          for (int part = 0; part < PARTS; ++part) {
            const int next = (number * PARTS + part + 1) % 2;
            const int later = step + 1 < STEPS ? slot * STEPS + step + 1 : (slot + stride) * STEPS;
            if (part + 1 < PARTS) read(slot * STEPS * GROUPS + number, part + 1, x[next]);
            else if (group + 1 < GROUPS) read(slot * STEPS * GROUPS + number + 1, 0, x[next]);
            else if (later < steps) read(later * GROUPS, 0, x[next]);
            else forget(x[next]);
            multiply(taken, number % 4, x[1 - next], sums[part]);
          }
        }
      }
      __syncwarp();
      send(slot + DEPTH * stride, place);
    }
    if constexpr (CODE == MXFP4) {
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[part][i] *= Pairs::MXFP4_UNIT;
      }
    }
  }
};

// A warp leaves its sums to the others of the block as [warp][column][row of the tile], with a gap that keeps columns in
// different banks.
constexpr int HEIGHT = 16 + 4;
template <int PARTS>
__device__ __forceinline__ void ponder_leave(const float (&sums)[PARTS][4], int columns, float* places) {
  const int lane = threadIdx.x & 31;
  places += (threadIdx.x >> 5) * columns * HEIGHT + lane / 4;
#pragma unroll
  for (int part = 0; part < PARTS; ++part) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = part * 8 + lane % 4 * 2 + i % 2;
      if (column < columns) places[column * HEIGHT + i / 2 * 8] = sums[part][i];
    }
  }
}
// The sum of what some warps left, which are `stride` numbers apart.
__device__ __forceinline__ float ponder_gather(const float* places, int warps, int stride) {
  float all = 0;
#pragma unroll 4
  for (int warp = 0; warp < warps; ++warp) all += places[warp * stride];
  return all;
}
// The number of the warp in its block, as a number that all its lanes have in common.
__device__ __forceinline__ int ponder_warp() { return __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0); }
