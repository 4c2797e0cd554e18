// One row x times matrices, on tensor cores. A tile is 16 rows of a matrix: the first operand of mma.m16n8k16. A lane reads
// 16 bytes of two of them at once, straight to registers. The second operand would have one column, x; instead it has a
// column for each of eight groups of numbers, with x in the rows of that group and zeros elsewhere, so that sums of groups
// stay apart until each is multiplied by its scale.

// 16 bytes that are read once.
__device__ __forceinline__ uint4 ponder_read_once(const char* from) {
  uint4 four;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
      : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w) : "l"(from));
  return four;
}

// x in shared memory as tiles read it: in units of the numbers that belong to a word of a matrix, four pairs of them.
// `sums` has the sum of each group. Behind its end x goes on with zeros, to a whole pass.
template <int CODE, int GROUP>
struct PonderX {
  static constexpr int BITS = CODE == MXFP4 ? 4 : CODE, EACH = 128 / BITS, BLOCK = 4 * EACH, PASS = 4 * BLOCK;
  // Bytes of a block and of a pass, and of all for a number of passes.
  static constexpr int OF_BLOCK = 256, OF_PASS = 4 * OF_BLOCK, ZEROS = 256, GROUPS = PASS / GROUP;
  __device__ static __forceinline__ int bytes(int passes) { return ZEROS + passes * (OF_PASS + GROUPS * 4); }

  char* all;
  int passes;
  __device__ __forceinline__ char* zeros() const { return all; }
  __device__ __forceinline__ char* numbers(int pass) const { return all + ZEROS + pass * OF_PASS; }
  __device__ __forceinline__ float* sums(int pass) const { return reinterpret_cast<float*>(numbers(passes)) + pass * GROUPS; }

  __device__ static __forceinline__ unsigned pair(T low, T high) { return low.bits | static_cast<unsigned>(high.bits) << 16; }
  __device__ __forceinline__ void unit(int index, uint4 pairs) const {
    // Four lanes read a word each, so that those that belong to the same words of four units lie together.
    const int place = (index & ~15) | (index & 3) << 2 | (index >> 2 & 3);
    *reinterpret_cast<uint4*>(numbers(0) + place * 16) = pairs;
  }
  // Puts eight numbers to their place; all lanes of a warp put neighboring ones.
  __device__ __forceinline__ void put(int eighth, const PonderEight& x) const {
    if constexpr (CODE == 8) {
      const unsigned a = pair(x.e[0], x.e[2]), b = pair(x.e[1], x.e[3]), c = pair(x.e[4], x.e[6]), d = pair(x.e[5], x.e[7]);
      unit(2 * eighth, make_uint4(a, a, b, b));
      unit(2 * eighth + 1, make_uint4(c, c, d, d));
    } else {
      unit(eighth, make_uint4(pair(x.e[0], x.e[4]), pair(x.e[1], x.e[5]), pair(x.e[2], x.e[6]), pair(x.e[3], x.e[7])));
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += ponder_float(x.e[i]);
#pragma unroll
    for (int step = GROUP / 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (eighth % (GROUP / 8) == 0) sums(0)[eighth / (GROUP / 8)] = sum;
  }
  // The eighths of a row, with zeros behind its end.
  __device__ __forceinline__ int eighths() const { return passes * (PASS / 8); }
  __device__ static __forceinline__ PonderEight read(const T* row, int inputs, int eighth) {
    PonderEight x = {};
    if (eighth * 8 < inputs) x = *reinterpret_cast<const PonderEight*>(row + eighth * 8);
    return x;
  }
  __device__ __forceinline__ void put_zeros() const {
    for (int i = threadIdx.x; i < ZEROS / 4; i += blockDim.x) reinterpret_cast<unsigned*>(zeros())[i] = 0;
  }
};

// Eighths of rows that the threads of a block put to their place: several of each are on their way before one is needed.
struct PonderEighths {
  static constexpr int AT_ONCE = 4;
  PonderEight x[AT_ONCE];
  template <class Read>
  __device__ __forceinline__ void load(int first, int count, Read read) {
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const int eighth = first + i * blockDim.x + threadIdx.x;
      if (eighth < count) x[i] = read(eighth);
    }
  }
  // Puts those that were loaded and reads the others.
  template <class Read, class Put>
  __device__ __forceinline__ void put(int count, Read read, Put put) {
    for (int first = 0;;) {
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        const int eighth = first + i * blockDim.x + threadIdx.x;
        if (eighth < count) put(eighth, x[i]);
      }
      first += AT_ONCE * blockDim.x;
      if (first >= count) break;
      load(first, count, read);
    }
  }
};

// The numbers of a tile that a warp reads in one pass, on their way.
template <int CODE, int GROUP>
struct PonderPass {
  typedef PonderX<CODE, GROUP> X;
  static constexpr bool AFFINE = CODE == 4 || CODE == 8;
  // Blocks whose groups have columns of their own, and those groups.
  static constexpr int WHOLE = 8 * GROUP / X::BLOCK, BLOCKS = WHOLE < 4 ? WHOLE : 4, TURNS = 4 / BLOCKS, GROUPS = BLOCKS * X::BLOCK / GROUP;
  uint4 words[4][2];
  unsigned short scales[TURNS][2][2], biases[TURNS][2][2];

  __device__ __forceinline__ void load_words(const PonderMatrix& matrix, const long (&rows)[2], int pass, int block) {
    const int row_bytes = matrix.inputs / 8 * X::BITS;
    // Behind the end x is zero.
    const int at = min(pass * 256 + block * 64 + static_cast<int>(threadIdx.x & 3) * 16, row_bytes - 16);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      words[block][half] = ponder_read_once(reinterpret_cast<const char*>(matrix.weight) + rows[half] * row_bytes + at);
  }
  __device__ __forceinline__ void load_scales(const PonderMatrix& matrix, const long (&rows)[2], int pass, int turn) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const long at = rows[half] * matrix.groups + min(pass * X::GROUPS + turn * GROUPS + static_cast<int>(threadIdx.x & 3) * 2 + i, matrix.groups - 1);
        if constexpr (AFFINE) {
          scales[turn][half][i] = reinterpret_cast<const unsigned short*>(matrix.scales)[at];
          biases[turn][half][i] = reinterpret_cast<const unsigned short*>(matrix.biases)[at];
        } else {
          scales[turn][half][i] = reinterpret_cast<const unsigned char*>(matrix.scales)[at];
        }
      }
    }
  }
  __device__ __forceinline__ void load(const PonderMatrix& matrix, const long (&rows)[2], int pass) {
#pragma unroll
    for (int block = 0; block < 4; ++block) load_words(matrix, rows, pass, block);
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) load_scales(matrix, rows, pass, turn);
  }
  // Bits of a word in those of a constant.
  __device__ static __forceinline__ unsigned put(unsigned word, unsigned above) {
    unsigned made;
    asm("lop3.b32 %0, %1, 0x000f000f, %2, 0xea;" : "=r"(made) : "r"(word), "r"(above));
    return made;
  }
  __device__ static __forceinline__ void unpack(unsigned word, unsigned (&pairs)[4]) {
    if constexpr (AFFINE) {
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[i] = put(word >> (4 * i), CODE == 8 && i % 2 == 1 ? Pairs::HIGH : Pairs::LOW);
    } else {
      constexpr int PLACE = Pairs::MXFP4_PLACE;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned moved = PLACE > 4 * i ? word << (PLACE - 4 * i) : word >> (4 * i - PLACE);
        pairs[i] = Pairs::scaled(((word << (12 - 4 * i)) & 0x80008000u) | (moved & Pairs::MXFP4), 127);
      }
    }
  }
  // Adds the products of this pass to the sums of the lane's two rows. What the warp needs next, if there is more, is
  // sent for meanwhile.
  __device__ __forceinline__ void run(
      const X& x, int pass, float (&sums)[2], const PonderMatrix& matrix, bool more, const long (&next_rows)[2], int next_pass) {
    const int lane = threadIdx.x & 31, own = lane >> 2, part = lane & 3;
    const char* const numbers = x.numbers(pass) + part * 16;
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
      // Two sums, because each product waits for the one before it that adds to the same.
      float made[2][4] = {};
#pragma unroll
      for (int i = 0; i < BLOCKS; ++i) {
        const int block = turn * BLOCKS + i;
        const char* const from = (i * 4 + part) * X::EACH / GROUP == own ? numbers + block * X::OF_BLOCK : x.zeros();
        const uint4 upper = words[block][0], lower = words[block][1];
        if (more) load_words(matrix, next_rows, next_pass, block);
        const unsigned both[4][2] = {{upper.x, lower.x}, {upper.y, lower.y}, {upper.z, lower.z}, {upper.w, lower.w}};
#pragma unroll
        for (int word = 0; word < 4; ++word) {
          const uint4 other = *reinterpret_cast<const uint4*>(from + word * 64);
          unsigned a[4], b[4];
          unpack(both[word][0], a);
          unpack(both[word][1], b);
          Pairs::multiply(made[0], a[0], b[0], a[1], b[1], other.x, other.y);
          Pairs::multiply(made[1], a[2], b[2], a[3], b[3], other.z, other.w);
        }
      }
      const float* const of_groups = x.sums(pass) + turn * GROUPS + part * 2;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          // Other columns have no group.
          if (GROUPS < 8 && part * 2 + i >= GROUPS) continue;
          const float sum = made[0][half * 2 + i] + made[1][half * 2 + i];
          if constexpr (AFFINE) {
            constexpr float ABOVE = (CODE == 8 ? 17 : 1) * Pairs::ABOVE;
            T scale, bias;
            scale.bits = scales[turn][half][i], bias.bits = biases[turn][half][i];
            const float factor = ponder_float(scale);
            sums[half] += factor * sum + (ponder_float(bias) - ABOVE * factor) * of_groups[i];
          } else {
            // A scale of 0 is the power of two below the normal ones.
            const unsigned bits = scales[turn][half][i];
            sums[half] += __uint_as_float(bits ? bits << 23 : 1u << 22) * (sum * Pairs::MXFP4_UNIT);
          }
        }
      }
      if (more) load_scales(matrix, next_rows, next_pass, turn);
    }
  }
};

// The most warps of a block, and the sums that they leave of a tile, two tiles at a time.
constexpr int ROW_WARPS = 16, ROW_PLACES = 2 * ROW_WARPS * 16;

// Leaves a warp's sums of 16 rows to the block.
__device__ __forceinline__ void ponder_leave_row(float (&sums)[2], float* places) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sums[half] += __shfl_xor_sync(0xffffffffu, sums[half], 1);
    sums[half] += __shfl_xor_sync(0xffffffffu, sums[half], 2);
    if ((lane & 3) == 0) places[(threadIdx.x >> 5) * 16 + half * 8 + (lane >> 2)] = sums[half];
  }
}

// A row times a matrix whose first row is `base`. A block has a tile after another; its warps share the inputs. `stage`
// puts x to its place; `finish` gets an output and its sum, and that of the second half of the outputs if `gated`.
template <int CODE, int GROUP, class Stage, class Finish>
__device__ __forceinline__ void ponder_row(
    const PonderMatrix& matrix, long base, int outputs, int gated, const PonderX<CODE, GROUP>& x, float* places, Stage stage, Finish finish) {
  const int warp = ponder_warp(), warps = blockDim.x / 32, own = (threadIdx.x & 31) >> 2;
  const int height = 16 >> gated, count = (outputs + height - 1) / height;
  const auto first = [&](int tile) { return min(tile * height, outputs - height); };
  const auto find = [&](int tile, long (&rows)[2]) {
    rows[0] = base + first(tile) + own;
    rows[1] = rows[0] + (gated ? outputs : 8);
  };
  PonderPass<CODE, GROUP> pass;
  long rows[2];
  find(blockIdx.x, rows);
  pass.load(matrix, rows, warp);
  stage();
  __syncthreads();
  for (int tile = blockIdx.x, turn = 0; tile < count; tile += gridDim.x, turn ^= 1) {
    float sums[2] = {};
    for (int part = warp; part < x.passes; part += warps) {
      const bool ends = part + warps >= x.passes, more = !ends || tile + static_cast<int>(gridDim.x) < count;
      if (ends && more) find(tile + gridDim.x, rows);
      pass.run(x, part, sums, matrix, more, rows, ends ? warp : part + warps);
    }
    float* const left = places + turn * (ROW_WARPS * 16);
    ponder_leave_row(sums, left);
    __syncthreads();
    if (static_cast<int>(threadIdx.x) >= height) continue;
    float sum = 0, other = 0;
    for (int i = 0; i < warps; ++i) {
      sum += left[i * 16 + threadIdx.x];
      if (gated) other += left[i * 16 + 8 + threadIdx.x];
    }
    finish(first(tile) + threadIdx.x, sum, other);
  }
}
// The room of a block for x, behind the sums.
constexpr int ROW_ROOM = ROOM - ROW_PLACES * 4;
