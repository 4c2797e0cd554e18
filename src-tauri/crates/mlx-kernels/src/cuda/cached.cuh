// Attention of one query of each sequence to the keys and values in its cache, which its own are written to first unless
// another launch has done that. WIDTH is that of a head, QUERIES the number of heads that a block lets share what it reads of a key head. The
// keys of a sequence are split among PARTS blocks, of which the last to end joins what all have found.
struct PonderPlace {
  T *keys, *values;
  long long places;
};

constexpr int WARPS = 4, CHUNK = 32, PER = WIDTH / 32, LANES = 8, EACH = WIDTH / LANES, FEWEST = WARPS * CHUNK;
struct alignas(PER * sizeof(T) < 16 ? PER * sizeof(T) : 16) PonderOwn { T e[PER]; };
constexpr int EIGHTS = EACH / 8;
struct alignas(8 * sizeof(T) < 16 ? 8 * sizeof(T) : 16) PonderEightOf { T e[8]; };

__device__ __forceinline__ void ponder_cached(
    const T* queries, const T* keys, const T* values, const T* sinks, PonderPlace place, int offset, T* result, float* partial,
    unsigned* counter, int heads, int key_heads, int parts, int groups, int window, float factor, int work) {
  __shared__ float scores[WARPS][CHUNK][QUERIES];
  __shared__ float read[QUERIES][WIDTH];
  __shared__ float found[WARPS][QUERIES][WIDTH];
  __shared__ float maxima[WARPS][QUERIES], sums[WARPS][QUERIES];
  __shared__ bool last;
  const int sequence = blockIdx.y, part = blockIdx.x % parts, group = blockIdx.x / parts % groups;
  const int key_head = blockIdx.x / parts / groups, shared = heads / key_heads;
  const int first_query = group * QUERIES, own = min(QUERIES, shared - first_query);
  const int head = key_head * shared + first_query, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int used = window > 0 ? min(offset + 1, window) : offset + 1, next = window > 0 ? offset % window : offset;
  const int size = max(FEWEST, (used + parts - 1) / parts), active = (used + size - 1) / size;
  if (part >= active && work != 2) return;
  const int first = part * size, end = min(used, first + size);
  T* all_keys = place.keys + key_head * place.places * WIDTH;
  T* all_values = place.values + key_head * place.places * WIDTH;
  if (work == 2 || (work == 1 && next >= first && next < end)) {
    const long row = ((long)sequence * key_heads + key_head) * WIDTH;
    for (int i = threadIdx.x; i < WIDTH; i += WARPS * 32) {
      all_keys[(long)next * WIDTH + i] = keys[row + i];
      all_values[(long)next * WIDTH + i] = values[row + i];
    }
  }
  if (work == 2) return;
  const T* all_queries = queries + ((long)sequence * heads + head) * WIDTH;
  for (int i = threadIdx.x; i < QUERIES * WIDTH; i += WARPS * 32) {
    read[i / WIDTH][i % WIDTH] = i / WIDTH < own ? ponder_float(all_queries[i]) * factor : 0.0f;
  }
  __syncthreads();

  float maximum[QUERIES], sum[QUERIES], taken[QUERIES][PER];
#pragma unroll
  for (int q = 0; q < QUERIES; ++q) {
    maximum[q] = NOTHING;
    sum[q] = 0;
#pragma unroll
    for (int i = 0; i < PER; ++i) taken[q][i] = 0;
  }
  const int of_key = lane / LANES, at = lane % LANES;
  for (int base = first + warp * CHUNK; base < end; base += WARPS * CHUNK) {
    // Eight lanes share a key, so that their sums take three steps for four keys.
#pragma unroll 2
    for (int k = 0; k < CHUNK; k += 32 / LANES) {
      const int key = base + k + of_key;
      const T* row = all_keys + (long)min(key, end - 1) * WIDTH;
      float dots[QUERIES] = {};
#pragma unroll
      for (int eighth = 0; eighth < EIGHTS; ++eighth) {
        // Lanes take turns, so that neighbors read neighboring bytes.
        const int column = (eighth * LANES + at) * 8;
        const PonderEightOf numbers = *reinterpret_cast<const PonderEightOf*>(row + column);
#pragma unroll
        for (int q = 0; q < QUERIES; ++q) {
          const float4 low = *reinterpret_cast<const float4*>(&read[q][column]);
          const float4 high = *reinterpret_cast<const float4*>(&read[q][column + 4]);
          dots[q] += ponder_float(numbers.e[0]) * low.x + ponder_float(numbers.e[1]) * low.y + ponder_float(numbers.e[2]) * low.z +
              ponder_float(numbers.e[3]) * low.w + ponder_float(numbers.e[4]) * high.x + ponder_float(numbers.e[5]) * high.y +
              ponder_float(numbers.e[6]) * high.z + ponder_float(numbers.e[7]) * high.w;
        }
      }
#pragma unroll
      for (int q = 0; q < QUERIES; ++q) {
#pragma unroll
        for (int step = LANES / 2; step > 0; step >>= 1) dots[q] += __shfl_xor_sync(0xffffffffu, dots[q], step);
        if (at == 0) scores[warp][k + of_key][q] = key < end ? dots[q] : NOTHING;
      }
    }
    __syncwarp();
#pragma unroll
    for (int q = 0; q < QUERIES; ++q) {
      const float score = scores[warp][lane][q];
      float highest = score;
#pragma unroll
      for (int step = 16; step > 0; step >>= 1) highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, step));
      highest = fmaxf(highest, maximum[q]);
      const float fade = __expf(maximum[q] - highest), share = __expf(score - highest);
      // Each lane keeps the sum of its own keys.
      sum[q] = sum[q] * fade + share;
      maximum[q] = highest;
#pragma unroll
      for (int i = 0; i < PER; ++i) taken[q][i] *= fade;
      scores[warp][lane][q] = share;
    }
    __syncwarp();
    const int count = min(CHUNK, end - base);
#pragma unroll 4
    for (int k = 0; k < count; ++k) {
      const PonderOwn numbers = *reinterpret_cast<const PonderOwn*>(all_values + (long)(base + k) * WIDTH + lane * PER);
#pragma unroll
      for (int q = 0; q < QUERIES; ++q) {
        const float share = scores[warp][k][q];
#pragma unroll
        for (int i = 0; i < PER; ++i) taken[q][i] += share * ponder_float(numbers.e[i]);
      }
    }
    __syncwarp();
  }
#pragma unroll
  for (int q = 0; q < QUERIES; ++q) {
    const float all = ponder_warp_sum(sum[q]);
    if (lane == 0) {
      maxima[warp][q] = maximum[q];
      sums[warp][q] = all;
    }
#pragma unroll
    for (int i = 0; i < PER; ++i) found[warp][q][lane * PER + i] = taken[q][i];
  }
  __syncthreads();

  // What a part found: sums [QUERIES][WIDTH], then the highest score and the whole of each query.
  constexpr int OF_PART = QUERIES * (WIDTH + 2);
  const long block = ((long)sequence * key_heads + key_head) * groups + group;
  float* mine = partial + (block * parts + part) * OF_PART;
  T* out = result + ((long)sequence * heads + head) * WIDTH;
  for (int i = threadIdx.x; i < own * WIDTH; i += WARPS * 32) {
    const int q = i / WIDTH;
    float highest = NOTHING, whole = 0, all = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) highest = fmaxf(highest, maxima[w][q]);
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      const float fade = __expf(maxima[w][q] - highest);
      whole += sums[w][q] * fade;
      all += found[w][q][i % WIDTH] * fade;
    }
    if (active > 1) {
      mine[i] = all;
      if (i % WIDTH == 0) {
        mine[QUERIES * WIDTH + 2 * q] = highest;
        mine[QUERIES * WIDTH + 2 * q + 1] = whole;
      }
      continue;
    }
    if (sinks != nullptr) {
      const float sink = ponder_float(sinks[head + q]), top = fmaxf(highest, sink);
      const float fade = __expf(highest - top);
      whole = whole * fade + __expf(sink - top);
      all *= fade;
    }
    out[i] = static_cast<T>(all / whole);
  }
  if (active == 1) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter + block, 1u) == active - 1u;
    if (last) counter[block] = 0;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  const float* parts_of = partial + block * parts * OF_PART;
  for (int i = threadIdx.x; i < own * WIDTH; i += WARPS * 32) {
    const int q = i / WIDTH;
    float highest = NOTHING, whole = 0, all = 0;
    for (int p = 0; p < active; ++p) highest = fmaxf(highest, __ldcg(parts_of + (long)p * OF_PART + QUERIES * WIDTH + 2 * q));
    if (sinks != nullptr) {
      highest = fmaxf(highest, ponder_float(sinks[head + q]));
      whole = __expf(ponder_float(sinks[head + q]) - highest);
    }
    for (int p = 0; p < active; ++p) {
      const float* of_part = parts_of + (long)p * OF_PART;
      const float fade = __expf(__ldcg(of_part + QUERIES * WIDTH + 2 * q) - highest);
      whole += __ldcg(of_part + QUERIES * WIDTH + 2 * q + 1) * fade;
      all += __ldcg(of_part + i) * fade;
    }
    out[i] = static_cast<T>(all / whole);
  }
}

__device__ __forceinline__ void ponder_cached_entry(
    const Shape& p_shape, const void* queries, const void* keys, const void* values, const void* sinks, const void* places,
    const void* offsets, void* result, void* partial, void* counter) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  ponder_cached(reinterpret_cast<const T*>(queries), reinterpret_cast<const T*>(keys), reinterpret_cast<const T*>(values),
      number(5) ? reinterpret_cast<const T*>(sinks) : nullptr, reinterpret_cast<const PonderPlace*>(places)[blockIdx.y],
      reinterpret_cast<const int*>(offsets)[blockIdx.y], reinterpret_cast<T*>(result), reinterpret_cast<float*>(partial),
      reinterpret_cast<unsigned*>(counter), number(0), number(1), number(2), number(3), number(4), __int_as_float(number(6)), number(7));
}
