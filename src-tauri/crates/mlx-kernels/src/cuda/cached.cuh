// Attention of one query of each sequence to the keys and values in its cache, which its own are written to first unless
// another launch has done that. WIDTH is that of a head, QUERIES the number of heads that a block lets share what it
// reads of a key head. The keys of a sequence are split among blocks, of which the last to end joins what all have found.
struct PonderPlace {
  T *keys, *values;
  long long places;
};

// As many warps as shared memory has room for what they find.
constexpr int WARPS = QUERIES * WIDTH > 1024 ? 4 : 8;
constexpr int THREADS = WARPS * 32, CHUNK = 16, LANES = 8, PER = WIDTH / 32, EIGHTS = WIDTH / LANES / 8;
// Keys of a part at least. Rows of keys that a warp has under way at once: four keys each.
constexpr int FEWEST = WARPS * CHUNK, AT_ONCE = WIDTH <= 128 ? 4 : WIDTH <= 256 ? 2 : 1, MAX_PARTS = 32;
struct alignas(PER * sizeof(T) < 16 ? PER * sizeof(T) : 16) PonderOwn { T e[PER]; };
struct alignas(8 * sizeof(T) < 16 ? 8 * sizeof(T) : 16) PonderEight { T e[8]; };
// The findings of a part: sums [QUERIES][WIDTH], then the highest score and the whole of each query, to a multiple of 16
// bytes.
constexpr int HIGHEST = QUERIES * WIDTH, OF_PART = HIGHEST + (2 * QUERIES + 3) / 4 * 4;

// Scores of CHUNK keys by a warp. Eight lanes share a key, so that their sums take three steps for four keys.
__device__ __forceinline__ void ponder_scores(
    const T* keys, int base, int end, const float (&read)[QUERIES][WIDTH], float (&scores)[CHUNK][QUERIES]) {
  const int lane = threadIdx.x & 31, of_key = lane / LANES, at = lane % LANES;
#pragma unroll
  for (int turn = 0; turn < CHUNK / 4; turn += AT_ONCE) {
    PonderEight numbers[AT_ONCE][EIGHTS];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const T* row = keys + (long)min(base + (turn + k) * 4 + of_key, end - 1) * WIDTH;
      // Lanes take turns, so that neighbors read neighboring bytes.
#pragma unroll
      for (int e = 0; e < EIGHTS; ++e) numbers[k][e] = *reinterpret_cast<const PonderEight*>(row + (e * LANES + at) * 8);
    }
#pragma unroll
    for (int q = 0; q < QUERIES; ++q) {
      float dots[AT_ONCE] = {};
#pragma unroll
      for (int e = 0; e < EIGHTS; ++e) {
        const float* own = &read[q][(e * LANES + at) * 8];
        const float4 low = *reinterpret_cast<const float4*>(own), high = *reinterpret_cast<const float4*>(own + 4);
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
          const T* of = numbers[k][e].e;
          dots[k] += ponder_float(of[0]) * low.x + ponder_float(of[1]) * low.y + ponder_float(of[2]) * low.z + ponder_float(of[3]) * low.w;
          dots[k] += ponder_float(of[4]) * high.x + ponder_float(of[5]) * high.y + ponder_float(of[6]) * high.z + ponder_float(of[7]) * high.w;
        }
      }
#pragma unroll
      for (int k = 0; k < AT_ONCE; ++k) {
#pragma unroll
        for (int step = LANES / 2; step > 0; step >>= 1) dots[k] += __shfl_xor_sync(0xffffffffu, dots[k], step);
        const int key = (turn + k) * 4 + of_key;
        if (at == 0) scores[key][q] = base + key < end ? dots[k] : NOTHING;
      }
    }
  }
}

// The heads that a block makes: queries of a row from `head` on, and with `to_keys` the keys and values of a key head, to
// where the cache has them.
struct PonderHeads {
  int row, heads, key_heads, head, key_head, count;
  T *to_keys, *to_values;
};

// Heads as another launch has made them: queries [rows, heads, WIDTH], keys and values [rows, key heads, WIDTH].
struct PonderMade {
  const T *queries, *keys, *values;
  struct Ready {};
  __device__ __forceinline__ Ready ready(const PonderHeads&) const { return {}; }
  __device__ __forceinline__ void make(const PonderHeads& wanted, const Ready&, float (*to)[WIDTH], float (*)[WIDTH]) const {
    const T* from = queries + ((long)wanted.row * wanted.heads + wanted.head) * WIDTH;
    for (int i = threadIdx.x; i < wanted.count * WIDTH; i += THREADS) to[i / WIDTH][i % WIDTH] = ponder_float(from[i]);
    if (wanted.to_keys == nullptr) return;
    const long own = ((long)wanted.row * wanted.key_heads + wanted.key_head) * WIDTH;
    for (int i = threadIdx.x; i < WIDTH; i += THREADS) {
      wanted.to_keys[i] = keys[own + i];
      wanted.to_values[i] = values[own + i];
    }
  }
};

// Heads as a projection gives them, [rows, heads + 2 · key heads, WIDTH]: the first `normed` are normed, and queries and
// keys turned, as ponder_heads does it. All but the projection is there before this launch.
struct PonderProjected {
  const T *all, *factors;
  const float* periods;
  const int* positions;
  int normed, rotated;
  bool neighbors;
  float eps;

  // The sines and cosines of the pairs of a lane.
  struct Ready { float sines[WIDTH / 64], cosines[WIDTH / 64]; };
  __device__ __forceinline__ Ready ready(const PonderHeads& wanted) const {
    Ready made = {};
    const float position = static_cast<float>(positions[wanted.row]);
#pragma unroll
    for (int i = 0; i < WIDTH / 64; ++i) {
      const int pair = (threadIdx.x & 31) + 32 * i;
      if (pair < rotated / 2) sincosf(position / periods[pair], &made.sines[i], &made.cosines[i]);
    }
    if (wanted.head < normed) ponder_all_ahead(factors + (long)wanted.head * WIDTH, wanted.count * WIDTH * sizeof(T));
    return made;
  }

  // A head on its way to a warp, whose lanes have neighboring numbers.
  struct Head { PonderOwn numbers, factors; };
  __device__ __forceinline__ Head load(const PonderHeads& wanted, int head) const {
    const int rows = wanted.heads + 2 * wanted.key_heads, at = (threadIdx.x & 31) * PER;
    Head loaded = {*reinterpret_cast<const PonderOwn*>(all + ((long)wanted.row * rows + head) * WIDTH + at), {}};
    if (head < normed) loaded.factors = *reinterpret_cast<const PonderOwn*>(factors + (long)head * WIDTH + at);
    return loaded;
  }
  __device__ __forceinline__ void finish(const Head& loaded, int head, const Ready& turns, float* to) const {
    const int lane = threadIdx.x & 31;
    float numbers[PER], squares = 0;
#pragma unroll
    for (int i = 0; i < PER; ++i) {
      numbers[i] = ponder_float(loaded.numbers.e[i]);
      squares += numbers[i] * numbers[i];
    }
    if (head < normed) {
      const float scale = rsqrtf(ponder_warp_sum(squares) / WIDTH + eps);
#pragma unroll
      for (int i = 0; i < PER; ++i) numbers[i] = ponder_round(ponder_round(numbers[i] * scale) * ponder_float(loaded.factors.e[i]));
    }
#pragma unroll
    for (int i = 0; i < PER; ++i) to[lane * PER + i] = numbers[i];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < WIDTH / 64; ++i) {
      const int pair = lane + 32 * i;
      if (pair >= rotated / 2) continue;
      const int one = neighbors ? 2 * pair : pair, other = neighbors ? one + 1 : pair + rotated / 2;
      const float a = to[one], b = to[other];
      to[one] = ponder_round(a * turns.cosines[i] - b * turns.sines[i]);
      to[other] = ponder_round(a * turns.sines[i] + b * turns.cosines[i]);
    }
    __syncwarp();
  }
  // A warp makes a head after another; all of them are on their way first. The last two are keys and values.
  __device__ __forceinline__ void make(const PonderHeads& wanted, const Ready& turns, float (*to)[WIDTH], float (*room)[WIDTH]) const {
    constexpr int TURNS = (QUERIES + 2 + WARPS - 1) / WARPS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = wanted.count, all_count = count + (wanted.to_keys != nullptr ? 2 : 0);
    const auto place = [&](int which) {
      return which < count ? wanted.head + which : wanted.heads + (which - count) * wanted.key_heads + wanted.key_head;
    };
    Head loaded[TURNS];
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
      const int which = warp + turn * WARPS;
      if (which < all_count) loaded[turn] = load(wanted, place(which));
    }
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
      const int which = warp + turn * WARPS;
      if (which < count) {
        finish(loaded[turn], place(which), turns, to[which]);
      } else if (which == count && which < all_count) {
        finish(loaded[turn], place(which), turns, room[warp]);
#pragma unroll
        for (int i = 0; i < PER; ++i) wanted.to_keys[lane * PER + i] = static_cast<T>(room[warp][lane * PER + i]);
      } else if (which < all_count) {
        *reinterpret_cast<PonderOwn*>(wanted.to_values + lane * PER) = loaded[turn].numbers;
      }
    }
  }
};

template <class Given>
__device__ __forceinline__ void ponder_cached(
    const Given& given, const T* sinks, PonderPlace place, int offset, T* result, float* partial, unsigned* counter, int heads, int key_heads,
    int parts, int groups, int window, float factor, int work) {
  __shared__ float scores[WARPS][CHUNK][QUERIES];
  __shared__ alignas(16) float read[QUERIES][WIDTH];
  __shared__ float found[WARPS][QUERIES][WIDTH];
  __shared__ float maxima[WARPS][QUERIES], sums[WARPS][QUERIES];
  __shared__ float shares[MAX_PARTS][QUERIES];
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
  const bool writes = work == 2 || (work == 1 && next >= first && next < end);
  T* const to_keys = writes ? all_keys + (long)next * WIDTH : nullptr;
  const PonderHeads wanted = {sequence, heads, key_heads, head, key_head, work == 2 ? 0 : own, to_keys, all_values + (long)next * WIDTH};
  if (work != 2) {
    const long start = (long)first * WIDTH, bytes = (long)(end - first) * WIDTH * sizeof(T);
    ponder_all_ahead(all_keys + start, bytes);
    ponder_all_ahead(all_values + start, bytes);
  }
  const auto ready = given.ready(wanted);
  ponder_wait();
  given.make(wanted, ready, read, found[0]);
  if (work == 2) return;
  __syncthreads();
  for (int i = threadIdx.x; i < QUERIES * WIDTH; i += THREADS) read[i / WIDTH][i % WIDTH] = i / WIDTH < own ? read[i / WIDTH][i % WIDTH] * factor : 0.0f;
  __syncthreads();

  float maximum[QUERIES], sum[QUERIES], taken[QUERIES][PER];
#pragma unroll
  for (int q = 0; q < QUERIES; ++q) {
    maximum[q] = NOTHING;
    sum[q] = 0;
#pragma unroll
    for (int i = 0; i < PER; ++i) taken[q][i] = 0;
  }
  for (int base = first + warp * CHUNK; base < end; base += WARPS * CHUNK) {
    ponder_scores(all_keys, base, end, read, scores[warp]);
    __syncwarp();
#pragma unroll
    for (int q = 0; q < QUERIES; ++q) {
      const float score = scores[warp][lane % CHUNK][q];
      float highest = score;
#pragma unroll
      for (int step = CHUNK / 2; step > 0; step >>= 1) highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, step));
      highest = fmaxf(highest, maximum[q]);
      const float fade = __expf(maximum[q] - highest), share = __expf(score - highest);
      // Each lane of the first half keeps the sum of its own keys.
      sum[q] = sum[q] * fade + (lane < CHUNK ? share : 0.0f);
      maximum[q] = highest;
#pragma unroll
      for (int i = 0; i < PER; ++i) taken[q][i] *= fade;
      __syncwarp();
      if (lane < CHUNK) scores[warp][lane][q] = share;
    }
    __syncwarp();
#pragma unroll
    for (int turn = 0; turn < CHUNK; turn += 2 * AT_ONCE) {
      PonderOwn numbers[2 * AT_ONCE];
#pragma unroll
      for (int k = 0; k < 2 * AT_ONCE; ++k) {
        // Keys behind the end have no share.
        const long key = min(base + turn + k, end - 1);
        numbers[k] = *reinterpret_cast<const PonderOwn*>(all_values + key * WIDTH + lane * PER);
      }
#pragma unroll
      for (int k = 0; k < 2 * AT_ONCE; ++k) {
#pragma unroll
        for (int q = 0; q < QUERIES; ++q) {
          const float share = scores[warp][turn + k][q];
#pragma unroll
          for (int i = 0; i < PER; ++i) taken[q][i] += share * ponder_float(numbers[k].e[i]);
        }
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

  const long block = ((long)sequence * key_heads + key_head) * groups + group;
  float* mine = partial + (block * parts + part) * OF_PART;
  T* out = result + ((long)sequence * heads + head) * WIDTH;
  for (int i = threadIdx.x; i < own * WIDTH; i += THREADS) {
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
        mine[HIGHEST + 2 * q] = highest;
        mine[HIGHEST + 2 * q + 1] = whole;
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

  // A warp weighs the parts of a query, a lane has one.
  const float* parts_of = partial + block * parts * OF_PART;
  for (int q = warp; q < own; q += WARPS) {
    const bool is_one = lane < active;
    const float highest = is_one ? __ldcg(parts_of + (long)lane * OF_PART + HIGHEST + 2 * q) : NOTHING;
    const float whole = is_one ? __ldcg(parts_of + (long)lane * OF_PART + HIGHEST + 2 * q + 1) : 0.0f;
    float top = highest;
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    const float sink = sinks != nullptr ? ponder_float(sinks[head + q]) : NOTHING;
    top = fmaxf(top, sink);
    const float fade = __expf(highest - top), all = ponder_warp_sum(whole * fade) + __expf(sink - top);
    if (is_one) shares[lane][q] = fade / all;
  }
  __syncthreads();
  // Parts are read several at a time.
  constexpr int TOGETHER = 8;
  for (int i = threadIdx.x * 4; i < own * WIDTH; i += THREADS * 4) {
    float all[4] = {};
    for (int p = 0; p < active; p += TOGETHER) {
      float4 of_parts[TOGETHER];
#pragma unroll
      for (int k = 0; k < TOGETHER; ++k)
        of_parts[k] = __ldcg(reinterpret_cast<const float4*>(parts_of + (long)min(p + k, active - 1) * OF_PART + i));
#pragma unroll
      for (int k = 0; k < TOGETHER; ++k) {
        const float share = p + k < active ? shares[p + k][i / WIDTH] : 0.0f;
        all[0] += of_parts[k].x * share, all[1] += of_parts[k].y * share, all[2] += of_parts[k].z * share, all[3] += of_parts[k].w * share;
      }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) out[i + k] = static_cast<T>(all[k]);
  }
}

template <class Given>
__device__ __forceinline__ void ponder_cached_numbers(
    const Shape& p_shape, const Given& given, const void* sinks, const void* places, const void* offsets, void* result, void* partial,
    void* counter) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  ponder_cached(given, number(5) ? reinterpret_cast<const T*>(sinks) : nullptr, reinterpret_cast<const PonderPlace*>(places)[blockIdx.y],
      reinterpret_cast<const int*>(offsets)[blockIdx.y], reinterpret_cast<T*>(result), reinterpret_cast<float*>(partial),
      reinterpret_cast<unsigned*>(counter), number(0), number(1), number(2), number(3), number(4), __int_as_float(number(6)), number(7));
}

__device__ __forceinline__ void ponder_cached_entry(
    const Shape& p_shape, const void* queries, const void* keys, const void* values, const void* sinks, const void* places,
    const void* offsets, void* result, void* partial, void* counter) {
  const PonderMade made = {reinterpret_cast<const T*>(queries), reinterpret_cast<const T*>(keys), reinterpret_cast<const T*>(values)};
  ponder_cached_numbers(p_shape, made, sinks, places, offsets, result, partial, counter);
}

// With the numbers and arguments of the launch that would make the heads.
__device__ __forceinline__ void ponder_projected_entry(
    const Shape& p_shape, const Shape& h_shape, const void* all, const void* factors, const void* periods, const void* positions,
    const void* sinks, const void* places, const void* offsets, void* result, void* partial, void* counter) {
  const auto number = [&](int place) { return ponder_number(h_shape, place); };
  const PonderProjected projected = {reinterpret_cast<const T*>(all), reinterpret_cast<const T*>(factors),
      reinterpret_cast<const float*>(periods), reinterpret_cast<const int*>(positions), number(3), number(4), number(5) != 0,
      __int_as_float(number(6))};
  ponder_cached_numbers(p_shape, projected, sinks, places, offsets, result, partial, counter);
}
