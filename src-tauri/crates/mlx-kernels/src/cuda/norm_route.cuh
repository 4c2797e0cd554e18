// A row is summed and normed as ponder_residual does, scored by a router [count, width], and its experts are chosen. A block
// has a row and makes as many scores as it has warps; the last block of a row to end chooses. `counters` has a zero for each
// row, before and after.
template <class Shapes>
__device__ __forceinline__ void ponder_norm_route(
    const Shapes& p_shape, const void* h, const void* x, const void* inner, const void* factor, const void* outer, const void* weight,
    const Shapes& weight_shape, const void* bias, const void* counters, void* sum, void* normed, void* scores, void* places, void* shares) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  const auto given = [&](int place, const void* pointer) { return number(place) ? reinterpret_cast<const T*>(pointer) : nullptr; };
  __shared__ alignas(16) T kept[8192];
  __shared__ bool last;
  const int chosen = number(0), count = weight_shape[0], width = weight_shape[1], lane = threadIdx.x & 31, warps = blockDim.x / 32;
  const long row = blockIdx.y;
  const bool first = blockIdx.x == 0;
  const int expert = blockIdx.x * warps + (threadIdx.x >> 5);
  const T* const own = reinterpret_cast<const T*>(weight) + static_cast<long>(expert) * width;
  if (expert < count) {
    for (int i = lane * 128; i < width * static_cast<int>(sizeof(T)); i += 32 * 128) ponder_ahead(reinterpret_cast<const char*>(own) + i);
  }
  ponder_all_ahead(outer, width * sizeof(T));
  ponder_wait();
  ponder_residual(reinterpret_cast<const T*>(h), reinterpret_cast<const T*>(x), given(2, inner), given(3, factor),
      reinterpret_cast<const T*>(outer), first ? reinterpret_cast<T*>(sum) : nullptr, first ? reinterpret_cast<T*>(normed) : nullptr, width,
      __int_as_float(number(1)), row, kept);
  __syncthreads();
  float* const of_row = reinterpret_cast<float*>(scores) + row * count;
  if (expert < count) {
    float score = 0;
#pragma unroll 4
    for (int i = lane * 8; i < width; i += 32 * 8) {
      const PonderEight numbers = *reinterpret_cast<const PonderEight*>(own + i), others = *reinterpret_cast<const PonderEight*>(kept + i);
#pragma unroll
      for (int k = 0; k < 8; ++k) score += ponder_float(numbers.e[k]) * ponder_float(others.e[k]);
    }
    score = ponder_round(ponder_warp_sum(score));
    if (number(4)) score = ponder_round(score + ponder_float(reinterpret_cast<const T*>(bias)[expert]));
    if (lane == 0) of_row[expert] = score;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned* const counter = reinterpret_cast<unsigned*>(const_cast<void*>(counters)) + row;
    last = atomicAdd(counter, 1u) == gridDim.x - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  if (!last || threadIdx.x >= 32) return;
  __threadfence();
  float value[SCORES];
#pragma unroll
  for (int i = 0; i < SCORES; ++i) value[i] = lane + 32 * i < count ? __ldcg(of_row + lane + 32 * i) : NOTHING;
  ponder_best(value, count, chosen, reinterpret_cast<unsigned*>(places) + row * chosen, reinterpret_cast<T*>(shares) + row * chosen);
}
