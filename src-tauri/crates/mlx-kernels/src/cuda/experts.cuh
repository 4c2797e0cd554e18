// Matrices of a stack [count, outputs, inputs], one after another, and their biases [count, outputs], if there are any.
struct PonderStack {
  const unsigned* weight;
  const void* scales;
  const T *biases, *bias;
  int inputs, outputs, groups;
};

// One row times the matrix of one expert, as ponder_linear.
template <int CODE, int ROWS, bool GATED>
__device__ __forceinline__ void ponder_expert(const T* x, const PonderStack& stack, long expert, T* y, int curve) {
  constexpr int OWN = GATED ? ROWS / 2 : ROWS;
  const int outputs = GATED ? stack.outputs / 2 : stack.outputs;
  const int first = ((blockIdx.x * blockDim.x + threadIdx.x) >> 5) * OWN;
  if (first >= outputs) return;
  long places[ROWS];
  float sums[ROWS];
  ponder_places<ROWS, GATED>(expert * stack.outputs, first, outputs, places);
  ponder_products<CODE, ROWS>(x, stack.weight, stack.scales, stack.biases, places, stack.inputs, stack.groups, sums);
  if ((threadIdx.x & 31) != 0) return;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    sums[r] = ponder_round(sums[r]);
    if (stack.bias != nullptr) sums[r] = ponder_round(sums[r] + ponder_float(stack.bias[places[r]]));
  }
#pragma unroll
  for (int o = 0; o < OWN; ++o) {
    if (first + o >= outputs) break;
    y[first + o] = static_cast<T>(GATED ? ponder_gate(sums[2 * o], sums[2 * o + 1], curve) : sums[o]);
  }
}

// The rows of one token, each times the matrix of its expert, summed by their shares. A warp has one expert, a block
// ROWS outputs of all of them.
template <int CODE, int ROWS>
__device__ __forceinline__ void ponder_expert_sum(
    const T* x, const PonderStack& stack, const unsigned* experts, long next_expert, const T* shares, long next_share, T* y) {
  __shared__ float parts[32][ROWS];
  const int warp = threadIdx.x >> 5, first = blockIdx.x * ROWS;
  long places[ROWS];
  float sums[ROWS];
  ponder_places<ROWS, false>(static_cast<long>(experts[warp * next_expert]) * stack.outputs, first, stack.outputs, places);
  ponder_products<CODE, ROWS>(x + (long)warp * stack.inputs, stack.weight, stack.scales, stack.biases, places, stack.inputs, stack.groups, sums);
  if ((threadIdx.x & 31) == 0) {
    const float share = ponder_float(shares[warp * next_share]);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      float sum = ponder_round(sums[r]);
      if (stack.bias != nullptr) sum = ponder_round(sum + ponder_float(stack.bias[places[r]]));
      parts[warp][r] = sum * share;
    }
  }
  __syncthreads();
  if (threadIdx.x >= ROWS || first + threadIdx.x >= stack.outputs) return;
  float all = 0;
  for (int part = 0; part < blockDim.x / 32; ++part) all += parts[part][threadIdx.x];
  y[first + threadIdx.x] = static_cast<T>(all);
}

template <class Shapes, class Steps>
__device__ __forceinline__ void ponder_experts(
    const Shapes& p_shape, const void* x, const Shapes& x_shape, const Steps& x_strides, const void* weight, const void* scales,
    const Shapes& scales_shape, const void* biases, const void* bias, const void* experts, const Shapes& experts_shape,
    const Steps& experts_strides, const void* shares, const Steps& shares_strides, void* result) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  const PonderStack stack = {reinterpret_cast<const unsigned*>(weight), scales, reinterpret_cast<const T*>(biases),
      number(3) ? reinterpret_cast<const T*>(bias) : nullptr, x_shape[1], scales_shape[1], scales_shape[2]};
  const int chosen = experts_shape[1];
  const unsigned* experts_ = reinterpret_cast<const unsigned*>(experts);
  const T* x_ = reinterpret_cast<const T*>(x);
  T* y = reinterpret_cast<T*>(result);
  if (number(0) == 2) {
    const long token = blockIdx.y;
    const unsigned* own = experts_ + token * experts_strides[0];
    const T* shares_ = reinterpret_cast<const T*>(shares) + token * shares_strides[0];
    const T* from = x_ + token * chosen * x_strides[0];
    T* to = y + token * stack.outputs;
    switch (number(1)) {
      case 0: ponder_expert_sum<4, 4>(from, stack, own, experts_strides[1], shares_, shares_strides[1], to); break;
      case 1: ponder_expert_sum<8, 4>(from, stack, own, experts_strides[1], shares_, shares_strides[1], to); break;
      case 2: ponder_expert_sum<PonderMxfp4::CODE, 4>(from, stack, own, experts_strides[1], shares_, shares_strides[1], to); break;
    }
    return;
  }
  const long pair = blockIdx.y, token = pair / chosen;
  const long expert = experts_[token * experts_strides[0] + pair % chosen * experts_strides[1]];
  // All experts of a token read its row, or each pair has one of its own.
  const T* from = x_ + (number(4) ? token : pair) * x_strides[0];
  const int curve = number(2);
  if (number(0) == 1) {
    T* to = y + pair * (stack.outputs / 2);
    switch (number(1)) {
      case 0: ponder_expert<4, 4, true>(from, stack, expert, to, curve); break;
      case 1: ponder_expert<8, 4, true>(from, stack, expert, to, curve); break;
      case 2: ponder_expert<PonderMxfp4::CODE, 4, true>(from, stack, expert, to, curve); break;
    }
    return;
  }
  T* to = y + pair * stack.outputs;
  switch (number(1)) {
    case 0: ponder_expert<4, 4, false>(from, stack, expert, to, 0); break;
    case 1: ponder_expert<8, 4, false>(from, stack, expert, to, 0); break;
    case 2: ponder_expert<PonderMxfp4::CODE, 4, false>(from, stack, expert, to, 0); break;
  }
}
