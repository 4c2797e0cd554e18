// Rows of a few tokens times the matrices of their experts, which are rows of a stack [count, outputs, inputs]. A pair is a
// token with an expert.
struct PonderRowStack {
  PonderMatrix matrix;
  const T* bias;
  int outputs;
  const unsigned* experts;
  long next_token, next_expert;
  int chosen;
  __device__ __forceinline__ long base(int pair) const {
    return static_cast<long>(experts[pair / chosen * next_token + pair % chosen * next_expert]) * outputs;
  }
  // A product as it is rounded, with its bias.
  __device__ __forceinline__ float finished(float sum, long place) const {
    sum = ponder_round(sum);
    return bias != nullptr ? ponder_round(sum + ponder_float(bias[place])) : sum;
  }
};

// One pair, by the block's place: a row of x is for `of_row` of them.
template <int CODE, int GROUP>
__device__ __forceinline__ void ponder_row_expert(
    const T* row, long next_row, int of_row, const PonderRowStack& stack, T* y, char* room, int gated, int curve) {
  typedef PonderX<CODE, GROUP> X;
  const int pair = blockIdx.y, outputs = stack.outputs >> gated;
  const X x = {room + ROW_PLACES * 4, (stack.matrix.inputs + X::PASS - 1) / X::PASS};
  const auto read = [&](int eighth) { return X::read(row + pair / of_row * next_row, stack.matrix.inputs, eighth); };
  ponder_wait();
  // The row is on its way while the place of the expert is read.
  PonderEighths eighths;
  eighths.load(0, x.eighths(), read);
  const long base = stack.base(pair);
  const auto stage = [&] {
    x.put_zeros();
    eighths.put(x.eighths(), read, [&](int eighth, const PonderEight& numbers) { x.put(eighth, numbers); });
  };
  const auto finish = [&](int output, float made, float second) {
    made = stack.finished(made, base + output);
    if (gated) made = ponder_gate(made, stack.finished(second, base + outputs + output), curve);
    y[static_cast<long>(pair) * outputs + output] = static_cast<T>(made);
  };
  ponder_row(stack.matrix, base, outputs, gated, x, reinterpret_cast<float*>(room), stage, finish);
}

// All experts of a token, by the block's place, each with a row of its own, summed by their shares. A block has a tile of 16
// outputs after another; its warps share the inputs of all experts.
template <int CODE, int GROUP>
__device__ __forceinline__ void ponder_row_expert_sum(
    const T* rows_of_x, long next_row, const PonderRowStack& stack, const T* shares, long next_share, T* y, char* room) {
  typedef PonderX<CODE, GROUP> X;
  const int first_pair = blockIdx.y * stack.chosen;
  rows_of_x += first_pair * next_row;
  y += static_cast<long>(blockIdx.y) * stack.outputs;
  const int warp = ponder_warp(), warps = blockDim.x / 32, own = (threadIdx.x & 31) >> 2, outputs = stack.outputs;
  const int passes = (stack.matrix.inputs + X::PASS - 1) / X::PASS, parts = stack.chosen * passes, count = (outputs + 15) / 16;
  float* const places = reinterpret_cast<float*>(room);
  const auto of_expert = [&](int expert) { return X{room + ROW_PLACES * 4 + expert * X::bytes(passes), passes}; };
  const auto find = [&](int tile, int part, long (&rows)[2]) {
    rows[0] = stack.base(first_pair + part / passes) + min(tile * 16, outputs - 16) + own;
    rows[1] = rows[0] + 8;
  };
  const int of_row = of_expert(0).eighths();
  const auto read = [&](int eighth) { return X::read(rows_of_x + eighth / of_row * next_row, stack.matrix.inputs, eighth % of_row); };
  const auto put = [&](int eighth, const PonderEight& numbers) { of_expert(eighth / of_row).put(eighth % of_row, numbers); };
  ponder_wait();
  PonderEighths eighths;
  eighths.load(0, stack.chosen * of_row, read);
  PonderPass<CODE, GROUP> pass;
  long rows[2];
  find(blockIdx.x, warp, rows);
  pass.load(stack.matrix, rows, warp % passes);
  for (int expert = 0; expert < stack.chosen; ++expert) of_expert(expert).put_zeros();
  eighths.put(stack.chosen * of_row, read, put);
  __syncthreads();
  for (int tile = blockIdx.x, turn = 0; tile < count; tile += gridDim.x, turn ^= 1) {
    float all[2] = {};
    for (int part = warp; part < parts; part += warps) {
      const bool ends = part + warps >= parts, more = !ends || tile + static_cast<int>(gridDim.x) < count;
      const int next = ends ? warp : part + warps;
      if (more) find(ends ? tile + gridDim.x : tile, next, rows);
      float sums[2] = {};
      const float share = ponder_float(shares[part / passes * next_share]);
      pass.run(of_expert(part / passes), part % passes, sums, stack.matrix, more, rows, next % passes);
      all[0] += share * sums[0], all[1] += share * sums[1];
    }
    float* const left = places + turn * (ROW_WARPS * 16);
    ponder_leave_row(all, left);
    __syncthreads();
    if (threadIdx.x >= 16) continue;
    const int output = min(tile * 16, outputs - 16) + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < warps; ++i) sum += left[i * 16 + threadIdx.x];
    if (stack.bias != nullptr) {
      for (int expert = 0; expert < stack.chosen; ++expert)
        sum += ponder_float(shares[expert * next_share]) * ponder_float(stack.bias[stack.base(first_pair + expert) + output]);
    }
    y[output] = static_cast<T>(sum);
  }
}

template <class Shapes, class Steps>
__device__ __forceinline__ void ponder_row_experts(
    const Shapes& p_shape, const void* x, const Shapes& x_shape, const Steps& x_strides, const void* weight, const void* scales,
    const Shapes& scales_shape, const void* biases, const void* bias, const void* experts, const Shapes& experts_shape,
    const Steps& experts_strides, const void* shares, const Steps& shares_strides, void* result) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  __shared__ alignas(16) char room[ROOM];
  const int gated = number(2) == 1, curve = number(3);
  const PonderRowStack stack = {{reinterpret_cast<const unsigned*>(weight), scales, biases, x_shape[1], scales_shape[2]},
      number(4) ? reinterpret_cast<const T*>(bias) : nullptr, scales_shape[1], reinterpret_cast<const unsigned*>(experts),
      experts_strides[0], experts_strides[1], experts_shape[1]};
  const T* const rows = reinterpret_cast<const T*>(x);
  const T* const own_shares = reinterpret_cast<const T*>(shares) + blockIdx.y * shares_strides[0];
  T* const y = reinterpret_cast<T*>(result);
  const long next = x_strides[0], next_share = shares_strides[1];
  const int of_row = number(5) ? stack.chosen : 1;
  const int kind = number(0) * 2 + number(1);
  if (number(2) == 2) {
    switch (kind) {
      case 0: ponder_row_expert_sum<4, 64>(rows, next, stack, own_shares, next_share, y, room); break;
      case 1: ponder_row_expert_sum<4, 128>(rows, next, stack, own_shares, next_share, y, room); break;
      case 2: ponder_row_expert_sum<4, 32>(rows, next, stack, own_shares, next_share, y, room); break;
      case 4: ponder_row_expert_sum<8, 64>(rows, next, stack, own_shares, next_share, y, room); break;
      case 5: ponder_row_expert_sum<8, 128>(rows, next, stack, own_shares, next_share, y, room); break;
      case 6: ponder_row_expert_sum<8, 32>(rows, next, stack, own_shares, next_share, y, room); break;
      case 8: ponder_row_expert_sum<MXFP4, 32>(rows, next, stack, own_shares, next_share, y, room); break;
    }
    return;
  }
  switch (kind) {
    case 0: ponder_row_expert<4, 64>(rows, next, of_row, stack, y, room, gated, curve); break;
    case 1: ponder_row_expert<4, 128>(rows, next, of_row, stack, y, room, gated, curve); break;
    case 2: ponder_row_expert<4, 32>(rows, next, of_row, stack, y, room, gated, curve); break;
    case 4: ponder_row_expert<8, 64>(rows, next, of_row, stack, y, room, gated, curve); break;
    case 5: ponder_row_expert<8, 128>(rows, next, of_row, stack, y, room, gated, curve); break;
    case 6: ponder_row_expert<8, 32>(rows, next, of_row, stack, y, room, gated, curve); break;
    case 8: ponder_row_expert<MXFP4, 32>(rows, next, of_row, stack, y, room, gated, curve); break;
  }
}
