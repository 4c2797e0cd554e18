// The pairs of a token and an expert that it goes to, by expert, and the tiles that their rows make: the expert, the first
// pair and how many. Tiles that are left over have none. One block.
template <class Shapes, class Steps>
__device__ __forceinline__ void ponder_sort(
    const Shapes& p_shape, const void* experts, const Shapes& experts_shape, const Steps& experts_strides, void* order, void* tiles) {
  constexpr int MOST = 512, EACH = MOST / 32;
  __shared__ int counts[MOST], starts[MOST], first_tiles[MOST], made;
  const int count = ponder_number(p_shape, 0), height = ponder_number(p_shape, 1);
  const int chosen = experts_shape[1], pairs = experts_shape[0] * chosen, most = min(count, pairs) + pairs / height;
  const unsigned* const from = reinterpret_cast<const unsigned*>(experts);
  unsigned* const to = reinterpret_cast<unsigned*>(order);
  unsigned* const tile = reinterpret_cast<unsigned*>(tiles);
  const auto expert = [&](int pair) {
    return min(from[pair / chosen * experts_strides[0] + pair % chosen * experts_strides[1]], static_cast<unsigned>(count - 1));
  };
  for (int i = threadIdx.x; i < MOST; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (int pair = threadIdx.x; pair < pairs; pair += blockDim.x) atomicAdd(counts + expert(pair), 1);
  __syncthreads();
  if (threadIdx.x < 32) {
    int rows = 0, high = 0;
    for (int i = 0; i < EACH; ++i) {
      const int own = counts[threadIdx.x * EACH + i];
      rows += own, high += (own + height - 1) / height;
    }
    int before = rows, high_before = high;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, before, step), high_other = __shfl_up_sync(0xffffffffu, high_before, step);
      if (threadIdx.x >= step) before += other, high_before += high_other;
    }
    if (threadIdx.x == 31) made = high_before;
    before -= rows, high_before -= high;
    for (int i = 0; i < EACH; ++i) {
      const int at = threadIdx.x * EACH + i, own = counts[at];
      starts[at] = before, first_tiles[at] = high_before;
      before += own, high_before += (own + height - 1) / height;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    for (int row = 0, place = first_tiles[i]; row < counts[i] && place < most; row += height, ++place) {
      tile[place * 3] = i, tile[place * 3 + 1] = starts[i] + row, tile[place * 3 + 2] = min(counts[i] - row, height);
    }
  }
  for (int i = made + threadIdx.x; i < most; i += blockDim.x) tile[i * 3] = 0, tile[i * 3 + 1] = 0, tile[i * 3 + 2] = 0;
  __syncthreads();
  for (int pair = threadIdx.x; pair < pairs; pair += blockDim.x) to[atomicAdd(starts + expert(pair), 1)] = pair;
}
