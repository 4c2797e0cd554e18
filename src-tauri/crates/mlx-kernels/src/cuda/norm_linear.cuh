// How a row is made that is read on the way to a matrix: (h + norm(x)·inner)·factor, then normed by `outer`. Null
// pointers leave their part out.
struct PonderRow {
  const T *h, *x, *inner, *factor, *outer;
  float eps;
  // A number of each warp, for either norm.
  float (*places)[ROW_WARPS];
};

// Makes the row, eight numbers at a time, for `put`, which gets them up to `end`, zeros behind the inputs; the row before
// its last norm goes to `sum`, if that is given. The result is the scale of that norm. Scales that were sent before a tile
// are there then. Every block computes the row again, so that none waits for another.
template <class Put>
__device__ __forceinline__ float ponder_stage(const PonderRow& row, T* sum, int inputs, int end, Put put) {
  const int start = threadIdx.x * 8, step = blockDim.x * 8;
  const float times = row.factor != nullptr ? ponder_float(row.factor[0]) : 1.0f;
  float inner_scale = 0;
  if (row.inner != nullptr) {
    float squares = 0;
    for (int column = start; column < inputs; column += step) {
      const PonderEight x = *reinterpret_cast<const PonderEight*>(row.x + column);
#pragma unroll
      for (int i = 0; i < 8; ++i) squares += ponder_float(x.e[i]) * ponder_float(x.e[i]);
    }
    inner_scale = rsqrtf(ponder_block_sum(squares, row.places[0]) / inputs + row.eps);
  }
  float squares = 0;
  for (int column = start; column < end; column += step) {
    PonderEight read = {};
    if (column < inputs) {
      const PonderEight h = *reinterpret_cast<const PonderEight*>(row.h + column);
      const PonderEight x = *reinterpret_cast<const PonderEight*>(row.x + column);
      PonderEight inner = h, outer = h, kept;
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
      if (sum != nullptr) *reinterpret_cast<PonderEight*>(sum + column) = kept;
    }
    put(column / 8, read);
  }
  ponder_arrived<DEPTH>();
  const float all_squares = ponder_block_sum(squares, row.places[1]);
  return row.outer != nullptr ? rsqrtf(all_squares / inputs + row.eps) : 1.0f;
}

// The row times a matrix, with what is done to the outputs: a gate by the second half of them, or the product of
// their curve with `other`.
struct PonderAfter {
  int gated, curve;
  const T* other;
  __device__ __forceinline__ T of(int output, float sum, float second, float scale) const {
    float made = ponder_round(sum * scale);
    if (gated) made = ponder_gate(made, ponder_round(second * scale), curve);
    if (other != nullptr) made = ponder_gate(made, ponder_float(other[output]), curve);
    return static_cast<T>(made);
  }
};

template <int CODE, int GROUP>
__device__ __forceinline__ void ponder_read(
    const PonderRow& row, const PonderMatrix& matrix, const PonderAfter& after, T* y, T* sum, char* room, int outputs) {
  typedef PonderX<CODE, GROUP> X;
  const X x = {room + ROW_PLACES * 4, (matrix.inputs + X::PASS - 1) / X::PASS};
  float scale = 1.0f;
  const auto stage = [&] {
    ponder_wait();
    x.put_zeros();
    const auto put = [&](int eighth, const PonderEight& numbers) { x.put(eighth, numbers); };
    scale = ponder_stage(row, blockIdx.x == 0 ? sum : nullptr, matrix.inputs, x.passes * X::PASS, put);
  };
  const auto finish = [&](int output, float made, float second) { y[output] = after.of(output, made, second, scale); };
  ponder_row(matrix, 0, outputs, after.gated, x, reinterpret_cast<float*>(room), stage, finish);
}

// The same with a matrix of plain numbers. A block makes 16 outputs at a time, as ponder_linear, and while it joins the
// sums of its warps, the next ones are on their way.
template <int CODE, int GROUPS>
__device__ __forceinline__ void ponder_read_tiles(
    const PonderRow& row, const PonderMatrix& matrix, const PonderAfter& after, T* y, T* sum, char* room, int outputs, int shift) {
  typedef PonderTile<CODE, GROUPS> Tile;
  const int gated = after.gated, warp = ponder_warp(), warps = blockDim.x / 32, all = 1 << gated, half = warp & gated;
  const int count = (outputs + 15) / 16, scale_bytes = Tile::scale_bytes(matrix, all);
  constexpr int LEFT = MAX_WARPS * HEIGHT;
  float* const places = reinterpret_cast<float*>(room);
  T* const staged = reinterpret_cast<T*>(places + 2 * LEFT);
  char* scales = reinterpret_cast<char*>(staged + matrix.inputs);
  char* const ring = scales + 2 * scale_bytes + warp * Tile::ring_bytes(matrix, warps >> gated);
  Tile own(matrix, ring, half, all, shift, warp >> gated, warps >> gated);
  const auto first = [&](int tile) { return min(tile * 16, outputs - 16); };
  const auto start = [&](int tile) {
    Tile::send_scales(matrix, first(tile), scales, 0, all);
    if (gated) Tile::send_scales(matrix, outputs + first(tile), scales, 1, all);
    ponder_commit();
    own.start(matrix, half * outputs + first(tile), scales);
  };
  start(blockIdx.x);
  ponder_wait();
  const auto put = [&](int eighth, const PonderEight& numbers) { *reinterpret_cast<PonderEight*>(staged + eighth * 8) = numbers; };
  const float scale = ponder_stage(row, blockIdx.x == 0 ? sum : nullptr, matrix.inputs, matrix.inputs, put);
  const T* const from[1] = {staged};
  for (int tile = blockIdx.x, turn = 0; tile < count; tile += gridDim.x, turn ^= 1) {
    float sums[1][4] = {};
    own.run(from, sums);
    scales = reinterpret_cast<char*>(staged + matrix.inputs) + (turn ^ 1) * scale_bytes;
    if (tile + gridDim.x < count) start(tile + gridDim.x);
    ponder_leave(sums, 1, places + turn * LEFT);
    ponder_arrived<DEPTH>();
    __syncthreads();
    if (threadIdx.x >= 16) continue;
    const int at = first(tile) + threadIdx.x;
    const float* left = places + turn * LEFT + threadIdx.x;
    const float made = ponder_gather(left, warps >> gated, HEIGHT << gated);
    const float second = gated ? ponder_gather(left + HEIGHT, warps >> 1, 2 * HEIGHT) : 0.0f;
    y[at] = after.of(at, made, second, scale);
  }
}

template <class Shapes>
__device__ __forceinline__ void ponder_reading(
    const Shapes& p_shape, const void* h, const void* x, const Shapes& x_shape, const void* inner, const void* factor, const void* outer,
    const void* weight, const Shapes& weight_shape, const void* scales, const Shapes& scales_shape, const void* biases, const void* other,
    void* y, void* sum) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  __shared__ alignas(16) char room[ROOM];
  __shared__ float places[2][ROW_WARPS];
  const int shift = number(1), parts = number(2), after = number(3);
  const auto maybe = [&](int bit, const void* pointer) { return parts >> bit & 1 ? reinterpret_cast<const T*>(pointer) : nullptr; };
  const PonderRow row = {reinterpret_cast<const T*>(h), reinterpret_cast<const T*>(x), maybe(0, inner), maybe(1, factor), maybe(2, outer),
      __int_as_float(number(5)), places};
  const PonderAfter ends = {after == 1, number(4), after == 2 ? reinterpret_cast<const T*>(other) : nullptr};
  const PonderMatrix matrix = {reinterpret_cast<const unsigned*>(weight), scales, biases, x_shape[1], scales_shape[1]};
  T* y_ = reinterpret_cast<T*>(y);
  T* sum_ = reinterpret_cast<T*>(sum);
  const int outputs = weight_shape[0] >> ends.gated;
  switch (number(0) * 2 + shift) {
    case 0: ponder_read<4, 64>(row, matrix, ends, y_, sum_, room, outputs); break;
    case 1: ponder_read<4, 128>(row, matrix, ends, y_, sum_, room, outputs); break;
    case 2: ponder_read<4, 32>(row, matrix, ends, y_, sum_, room, outputs); break;
    case 4: ponder_read<8, 64>(row, matrix, ends, y_, sum_, room, outputs); break;
    case 5: ponder_read<8, 128>(row, matrix, ends, y_, sum_, room, outputs); break;
    case 6: ponder_read<8, 32>(row, matrix, ends, y_, sum_, room, outputs); break;
    case 8: ponder_read<MXFP4, 32>(row, matrix, ends, y_, sum_, room, outputs); break;
    case 10: ponder_read_tiles<16, 1>(row, matrix, ends, y_, sum_, room, outputs, shift); break;
  }
}
