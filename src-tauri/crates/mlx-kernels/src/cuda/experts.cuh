// Matrices of a stack [count, outputs, inputs], one after another, and their biases [count, outputs], if there are any;
// the pairs of a token and an expert that it goes to.
struct PonderStack {
  PonderMatrix matrix;
  const T* bias;
  int outputs;
};
struct PonderChoice {
  const unsigned* experts;
  long next_token, next;
  int tokens, chosen;
  __device__ __forceinline__ int pairs() const { return tokens * chosen; }
  __device__ __forceinline__ unsigned operator[](int pair) const { return experts[pair / chosen * next_token + pair % chosen * next]; }
};

// A product as it is rounded, with its bias.
__device__ __forceinline__ float ponder_finish(float sum, const PonderStack& stack, long place) {
  sum = ponder_round(sum);
  return stack.bias != nullptr ? ponder_round(sum + ponder_float(stack.bias[place])) : sum;
}

// Lists the pairs from this one on that go to its expert; none if one before it does, whose block computes all of them.
__device__ __forceinline__ int ponder_list(const PonderChoice& choice, int pair, unsigned expert, int* list) {
  __shared__ int count;
  bool known = false;
  for (int i = threadIdx.x; i < pair; i += blockDim.x) known |= choice[i] == expert;
  if (__syncthreads_or(known)) return 0;
  if (threadIdx.x < 32) {
    int listed = 0;
    for (int start = pair; start < choice.pairs(); start += 32) {
      const int i = start + threadIdx.x;
      const bool same = i < choice.pairs() && choice[i] == expert;
      const unsigned all = __ballot_sync(0xffffffffu, same);
      if (same) list[listed + __popc(all & ((1u << threadIdx.x) - 1))] = i;
      listed += __popc(all);
    }
    count = listed;
  }
  __syncthreads();
  return count;
}

// The rows of all pairs of an expert times its matrix, eight at a time. A block makes 16 outputs, as ponder_linear.
template <int CODE, int GROUPS>
__device__ __forceinline__ void ponder_expert(
    const T* x, long next_row, int of_row, const PonderStack& stack, const PonderChoice& choice, T* y, char* room, int* list, int shift,
    int gated, int curve) {
  typedef PonderTile<CODE, GROUPS> Tile;
  const int lane = threadIdx.x & 31, warp = ponder_warp(), warps = blockDim.x / 32, pair = blockIdx.y, all = 1 << gated;
  const int outputs = stack.outputs >> gated, first = min(static_cast<int>(blockIdx.x) * 16, outputs - 16), half = warp & gated;
  ponder_wait();
  const unsigned expert = choice[pair];
  int count = 1;
  if (choice.tokens > 1) count = ponder_list(choice, pair, expert, list);
  else if (threadIdx.x == 0) list[0] = pair;
  const long base = static_cast<long>(expert) * stack.outputs + first;
  char* rings = room + Tile::scale_bytes(stack.matrix, all);
  for (int done = 0; done < count; done += 8) {
    const int columns = min(count - done, 8);
    Tile::send_scales(stack.matrix, base, room, 0, all);
    if (gated) Tile::send_scales(stack.matrix, base + outputs, room, 1, all);
    ponder_commit();
    char* ring = rings + warp * Tile::ring_bytes(stack.matrix, warps >> gated);
    Tile tile(stack.matrix, ring, half, all, shift, warp >> gated, warps >> gated);
    tile.start(stack.matrix, base + half * outputs, room);
    ponder_arrived<DEPTH>();
    __syncthreads();
    const T* const from[1] = {x + list[done + min(lane / 4, columns - 1)] / of_row * next_row};
    float sums[1][4] = {};
    tile.run(from, sums);
    float* places = reinterpret_cast<float*>(room);
    __syncthreads();
    ponder_leave(sums, columns, places);
    __syncthreads();
    const int height = columns * HEIGHT;
    for (int i = threadIdx.x; i < columns * 16; i += blockDim.x) {
      const int column = i / 16, output = i % 16;
      const float* at = places + column * HEIGHT + output;
      float made = ponder_finish(ponder_gather(at, warps >> gated, height << gated), stack, base + output);
      if (gated) {
        const float up = ponder_finish(ponder_gather(at + height, warps >> 1, 2 * height), stack, base + outputs + output);
        made = ponder_gate(made, up, curve);
      }
      y[static_cast<long>(list[done + column]) * outputs + first + output] = static_cast<T>(made);
    }
    __syncthreads();
  }
}

// The rows of the only token, each times the matrix of its expert, summed by their shares. Some warps have one expert, a
// block 16 outputs of all of them.
template <int CODE, int GROUPS>
__device__ __forceinline__ void ponder_expert_sum(
    const T* x, long next_row, const PonderStack& stack, const PonderChoice& choice, const T* shares, long next_share, T* y, char* room,
    int shift) {
  typedef PonderTile<CODE, GROUPS> Tile;
  const int first = min(static_cast<int>(blockIdx.x) * 16, stack.outputs - 16), warp = ponder_warp(), all = choice.chosen;
  const int warps = blockDim.x / 32 / all, own = warp / warps;
  ponder_wait();
  for (int i = 0; i < all; ++i)
    Tile::send_scales(stack.matrix, static_cast<long>(choice[i]) * stack.outputs + first, room, i, all);
  ponder_commit();
  char* rings = room + Tile::scale_bytes(stack.matrix, all);
  const long row = static_cast<long>(choice[own]) * stack.outputs + first;
  Tile tile(stack.matrix, rings + warp * Tile::ring_bytes(stack.matrix, warps), own, all, shift, warp % warps, warps);
  tile.start(stack.matrix, row, room);
  ponder_arrived<DEPTH>();
  __syncthreads();
  const T* const from[1] = {x + own * next_row};
  float sums[1][4] = {};
  tile.run(from, sums);
  float* places = reinterpret_cast<float*>(room);
  __syncthreads();
  ponder_leave(sums, 1, places);
  __syncthreads();
  if (threadIdx.x >= 16) return;
  float total = 0;
  for (int i = 0; i < all; ++i) {
    const float sum = ponder_gather(places + i * warps * HEIGHT + threadIdx.x, warps, HEIGHT);
    const long place = static_cast<long>(choice[i]) * stack.outputs + first + threadIdx.x;
    total += ponder_finish(sum, stack, place) * ponder_float(shares[i * next_share]);
  }
  y[first + threadIdx.x] = static_cast<T>(total);
}

template <class Shapes, class Steps>
__device__ __forceinline__ void ponder_experts(
    const Shapes& p_shape, const void* x, const Shapes& x_shape, const Steps& x_strides, const void* weight, const void* scales,
    const Shapes& scales_shape, const void* biases, const void* bias, const void* experts, const Shapes& experts_shape,
    const Steps& experts_strides, const void* shares, const Steps& shares_strides, void* result) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  __shared__ alignas(16) char room[ROOM - 2048];
  __shared__ int list[512];
  const int shift = number(1), gated = number(2) == 1, curve = number(3);
  const PonderStack stack = {{reinterpret_cast<const unsigned*>(weight), scales, biases, x_shape[1], scales_shape[2]},
      number(4) ? reinterpret_cast<const T*>(bias) : nullptr, scales_shape[1]};
  const PonderChoice choice = {reinterpret_cast<const unsigned*>(experts), experts_strides[0], experts_strides[1], experts_shape[0],
      experts_shape[1]};
  const T* x_ = reinterpret_cast<const T*>(x);
  const T* shares_ = reinterpret_cast<const T*>(shares);
  T* y = reinterpret_cast<T*>(result);
  const long next = x_strides[0], next_share = shares_strides[1];
  if (number(2) == 2) {
    switch (number(0)) {
      case 0: ponder_expert_sum<4, 1>(x_, next, stack, choice, shares_, next_share, y, room, shift); break;
      case 1: ponder_expert_sum<4, 2>(x_, next, stack, choice, shares_, next_share, y, room, shift); break;
      case 2: ponder_expert_sum<8, 1>(x_, next, stack, choice, shares_, next_share, y, room, shift); break;
      case 3: ponder_expert_sum<8, 2>(x_, next, stack, choice, shares_, next_share, y, room, shift); break;
      case 4: ponder_expert_sum<MXFP4, 1>(x_, next, stack, choice, shares_, next_share, y, room, shift); break;
    }
    return;
  }
  // All experts of a token read its row, or each pair has one of its own.
  const int of_row = number(5) ? choice.chosen : 1;
  switch (number(0)) {
    case 0: ponder_expert<4, 1>(x_, next, of_row, stack, choice, y, room, list, shift, gated, curve); break;
    case 1: ponder_expert<4, 2>(x_, next, of_row, stack, choice, y, room, list, shift, gated, curve); break;
    case 2: ponder_expert<8, 1>(x_, next, of_row, stack, choice, y, room, list, shift, gated, curve); break;
    case 3: ponder_expert<8, 2>(x_, next, of_row, stack, choice, y, room, list, shift, gated, curve); break;
    case 4: ponder_expert<MXFP4, 1>(x_, next, of_row, stack, choice, y, room, list, shift, gated, curve); break;
  }
}
