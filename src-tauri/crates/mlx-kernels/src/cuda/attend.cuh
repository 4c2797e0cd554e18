// One query against the keys. One block a query head and part of the keys; its warps take keys by turns, each lane
// holds WIDTH / 32 neighboring elements of a head.
template <int WIDTH, bool PARTS>
__device__ __forceinline__ void ponder_attend(
    const T* queries, const T* keys, const T* values, T* result, float* partial, float* weights, int heads, int key_heads, int count,
    long key_head_step, long key_step, long value_head_step, long value_step, float factor) {
  constexpr int PER = WIDTH / 32, AT_ONCE = WIDTH > 256 ? 2 : 4, WARPS = WIDTH > 256 ? 12 : 16;
  struct alignas(16) Chunk { T e[PER]; };
  __shared__ float maxima[WARPS], sums[WARPS];
  __shared__ float shares[WARPS][WIDTH];
  const int head = blockIdx.x, part = blockIdx.y, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int key_head = head / (heads / key_heads);
  const int size = (count + gridDim.y - 1) / gridDim.y, first = part * size, end = min(count, first + size);
  const T* all_keys = keys + key_head * key_head_step + lane * PER;
  const T* all_values = values + key_head * value_head_step + lane * PER;
  float query[PER], taken[PER];
  {
    const Chunk chunk = *reinterpret_cast<const Chunk*>(queries + head * WIDTH + lane * PER);
#pragma unroll
    for (int i = 0; i < PER; ++i) {
      query[i] = ponder_float(chunk.e[i]) * factor;
      taken[i] = 0;
    }
  }
  float maximum = NOTHING, sum = 0;
  for (int base = first + warp; base < end; base += WARPS * AT_ONCE) {
    Chunk key[AT_ONCE], value[AT_ONCE];
    float score[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const long j = min(base + k * WARPS, end - 1);
      key[k] = *reinterpret_cast<const Chunk*>(all_keys + j * key_step);
      value[k] = *reinterpret_cast<const Chunk*>(all_values + j * value_step);
    }
    float highest = maximum;
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      float dot = 0;
#pragma unroll
      for (int i = 0; i < PER; ++i) dot += query[i] * ponder_float(key[k].e[i]);
      dot = ponder_warp_sum(dot);
      score[k] = base + k * WARPS < end ? dot : NOTHING;
      highest = fmaxf(highest, score[k]);
    }
    const float fade = __expf(maximum - highest);
    sum *= fade;
#pragma unroll
    for (int i = 0; i < PER; ++i) taken[i] *= fade;
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const float share = __expf(score[k] - highest);
      sum += share;
#pragma unroll
      for (int i = 0; i < PER; ++i) taken[i] += share * ponder_float(value[k].e[i]);
    }
    maximum = highest;
  }
  if (lane == 0) {
    maxima[warp] = maximum;
    sums[warp] = sum;
  }
#pragma unroll
  for (int i = 0; i < PER; ++i) shares[warp][lane * PER + i] = taken[i];
  __syncthreads();
  float highest = NOTHING, whole = 0;
  for (int w = 0; w < WARPS; ++w) highest = fmaxf(highest, maxima[w]);
  for (int w = 0; w < WARPS; ++w) whole += sums[w] * __expf(maxima[w] - highest);
  for (int i = threadIdx.x; i < WIDTH; i += WARPS * 32) {
    float out = 0;
    for (int w = 0; w < WARPS; ++w) out += shares[w][i] * __expf(maxima[w] - highest);
    if (PARTS) {
      partial[((long)head * gridDim.y + part) * WIDTH + i] = out;
    } else {
      result[head * WIDTH + i] = static_cast<T>(out / whole);
    }
  }
  if (PARTS && threadIdx.x == 0) {
    weights[(head * gridDim.y + part) * 2] = highest;
    weights[(head * gridDim.y + part) * 2 + 1] = whole;
  }
}

// Joins the parts of an attention: one block a head.
__device__ __forceinline__ void ponder_join(const float* partial, const float* weights, T* result, int parts, int width) {
  const int head = blockIdx.x;
  const float* mine = weights + (long)head * parts * 2;
  float highest = NOTHING, whole = 0;
  for (int p = 0; p < parts; ++p) highest = fmaxf(highest, mine[2 * p]);
  for (int p = 0; p < parts; ++p) whole += mine[2 * p + 1] * __expf(mine[2 * p] - highest);
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    float out = 0;
    for (int p = 0; p < parts; ++p) out += partial[((long)head * parts + p) * width + i] * __expf(mine[2 * p] - highest);
    result[head * width + i] = static_cast<T>(out / whole);
  }
}

template <class Shapes, class Steps>
__device__ __forceinline__ void ponder_whole(
    const Shapes& p_shape, const void* a, const void* b, const Shapes& b_shape, const Steps& b_strides, const void* c,
    const Steps& c_strides, void* result) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  const T* a_ = reinterpret_cast<const T*>(a);
  const T* b_ = reinterpret_cast<const T*>(b);
  const T* c_ = reinterpret_cast<const T*>(c);
  T* result_ = reinterpret_cast<T*>(result);
  const int width = number(1), heads = number(2), key_heads = number(3);
  const float factor = __int_as_float(number(4));
  if (number(0)) {
    ponder_join(reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b), result_, b_shape[1], width);
  } else if (width == 256) {
    ponder_attend<256, false>(a_, b_, c_, result_, nullptr, nullptr, heads, key_heads, b_shape[2], b_strides[1], b_strides[2], c_strides[1],
        c_strides[2], factor);
  } else {
    ponder_attend<512, false>(a_, b_, c_, result_, nullptr, nullptr, heads, key_heads, b_shape[2], b_strides[1], b_strides[2], c_strides[1],
        c_strides[2], factor);
  }
}

template <class Shapes, class Steps>
__device__ __forceinline__ void ponder_split(
    const Shapes& p_shape, const void* a, const void* b, const Shapes& b_shape, const Steps& b_strides, const void* c,
    const Steps& c_strides, void* partial, void* weights) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  const T* a_ = reinterpret_cast<const T*>(a);
  const T* b_ = reinterpret_cast<const T*>(b);
  const T* c_ = reinterpret_cast<const T*>(c);
  const int width = number(1), heads = number(2), key_heads = number(3);
  const float factor = __int_as_float(number(4));
  float* partial_ = reinterpret_cast<float*>(partial);
  float* weights_ = reinterpret_cast<float*>(weights);
  if (width == 256) {
    ponder_attend<256, true>(a_, b_, c_, nullptr, partial_, weights_, heads, key_heads, b_shape[2], b_strides[1], b_strides[2], c_strides[1],
        c_strides[2], factor);
  } else {
    ponder_attend<512, true>(a_, b_, c_, nullptr, partial_, weights_, heads, key_heads, b_shape[2], b_strides[1], b_strides[2], c_strides[1],
        c_strides[2], factor);
  }
}
