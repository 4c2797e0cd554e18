// The choice of the next token of each row of logits, a block of 1024 threads a row. The rules and their roundings are
// those of mlx-lm's samplers by MLX's operations, so that a seed draws the same token in both ways.
struct PonderSampler {
  // 1 / temperature; 0 for the likeliest token.
  float inverse;
  // The probability of the smallest set that is kept; 0 for all.
  float top_p;
  // The logarithm of how likely a token is at least beside the likeliest; above 0 for all.
  float log_min_p;
  // How many of the likeliest are kept; 0 for all.
  unsigned top_k;
  // The state of the random numbers.
  unsigned key[2];
  unsigned unused[2];
};

// Tokens that thresholds are looked for among, if they are certain to lie there.
constexpr int CANDIDATES = 4096;
// Of more than these a block looks for them, else a warp, which need not wait for others.
constexpr int MANY = 512;
// By how much the logits of candidates are below the highest.
constexpr int REACHED = 4;
__device__ constexpr float REACHES[REACHED] = {1.0f, 2.5f, 6.0f, 12.0f};

// Threefry of 2 × 32 bits with 20 rounds (Salmon and others, 2011).
__device__ __forceinline__ uint2 ponder_threefry(unsigned key, unsigned other, unsigned x, unsigned y) {
  const unsigned keys[3] = {key, other, key ^ other ^ 0x1bd11bdau};
  const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  x += keys[0], y += keys[1];
#pragma unroll
  for (int group = 0; group < 5; ++group) {
#pragma unroll
    for (int round = 0; round < 4; ++round) {
      const int turn = turns[group % 2][round];
      x += y;
      y = (y << turn | y >> (32 - turn)) ^ x;
    }
    x += keys[(group + 1) % 3];
    y += keys[(group + 2) % 3] + group + 1;
  }
  uint2 made;
  made.x = x, made.y = y;
  return made;
}

// A number from 0 to below 1; the state becomes the next one.
__device__ __forceinline__ float ponder_uniform(unsigned* state) {
  const uint2 a = ponder_threefry(state[0], state[1], 0, 2), b = ponder_threefry(state[0], state[1], 1, 3);
  state[0] = a.x, state[1] = b.x;
  return fminf(static_cast<float>(ponder_threefry(a.y, b.y, 0, 0).x) / 4294967296.0f, 0.99999994f);
}

// Whole numbers in the order of numbers that were rounded to activations.
__device__ __forceinline__ unsigned ponder_order(float value) {
  constexpr int UNUSED = sizeof(T) == 2 ? 13 : 0;
  const unsigned bits = __float_as_uint(value);
  return (bits >> 31 ? ~bits : bits | 0x80000000u) >> UNUSED;
}

// Visits all numbers of a row and their places.
template <class Visit>
__device__ __forceinline__ void ponder_each(const T* row, int count, const Visit& visit) {
  struct alignas(8 * sizeof(T) < 16 ? 8 * sizeof(T) : 16) Eight { T e[8]; };
  // A row of an odd length begins anywhere.
  const int eights = count % 8 == 0 ? count / 8 : 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight eight = reinterpret_cast<const Eight*>(row)[i];
#pragma unroll
    for (int e = 0; e < 8; ++e) visit(ponder_float(eight.e[e]), i * 8 + e);
  }
  for (int i = eights * 8 + threadIdx.x; i < count; i += blockDim.x) visit(ponder_float(row[i]), i);
}

// The threads that look for thresholds: a warp, or all of a block.
template <bool WARP>
struct PonderGroup {
  float* place;
  __device__ __forceinline__ float sum(float value) const {
    value = ponder_warp_sum(value);
    if (WARP) return value;
    __syncthreads();
    if ((threadIdx.x & 31) == 0) place[threadIdx.x >> 5] = value;
    __syncthreads();
    float all = 0;
    for (int warp = 0; warp < blockDim.x / 32; ++warp) all += place[warp];
    return all;
  }
};

// Logarithms of the shares of a row's tokens, `all` being that of their sum.
struct PonderRow {
  const T* row;
  int count;
  float all;
  __device__ __forceinline__ float at(int place) const { return ponder_round(ponder_float(row[place]) - all); }
  template <class Visit>
  __device__ __forceinline__ void each(const Visit& visit) const {
    ponder_each(row, count, [&](float value, int place) { visit(ponder_round(value - all), place); });
  }
};

// The same of some tokens, visited by `threads`.
struct PonderCandidates {
  const float* values;
  const int* places;
  int count, threads;
  template <class Visit>
  __device__ __forceinline__ void each(const Visit& visit) const {
    for (int i = threadIdx.x; i < count; i += threads) visit(values[i], places[i]);
  }
};

template <class Group, class Tokens, class Weight>
__device__ __forceinline__ float ponder_total(const Group& group, const Tokens& tokens, const Weight& weight) {
  float sum = 0;
  tokens.each([&](float value, int place) { sum += weight(value, place); });
  return group.sum(sum);
}

// What is kept: all above `low` in order, and of those that equal it the ones at places before `end`.
struct PonderKept {
  unsigned low;
  int end;
  __device__ __forceinline__ bool has(float value, int place) const {
    const unsigned order = ponder_order(value);
    return order > low || (order == low && place < end);
  }
};

// Keeps the smallest set whose shares reach `mass`, if that is not 0, then the `most` likeliest, if that is not 0. The
// order of `tokens` is from `low` to `high`, and all others are below.
template <class Group, class Tokens>
__device__ __forceinline__ PonderKept ponder_keep(
    const Group& group, const Tokens& tokens, unsigned low, unsigned high, float mass, unsigned least, unsigned most, int count) {
  const auto from = [&](unsigned bound) {
    return ponder_total(group, tokens, [=](float value, int) { return ponder_order(value) >= bound ? 1.0f : 0.0f; });
  };
  if (mass > 0) {
    for (unsigned end = high; low < end;) {
      const unsigned middle = low + (end - low) / 2;
      const float above =
          ponder_total(group, tokens, [=](float value, int) { return ponder_order(value) > middle ? expf(value) : 0.0f; });
      if (above < mass) end = middle;
      else low = middle + 1;
    }
  }
  low = max(low, least);
  PonderKept kept{low, 0x7fffffff};
  if (most == 0 || from(low) <= most) return kept;
  for (unsigned end = high; low < end;) {
    const unsigned middle = low + (end - low + 1) / 2;
    if (from(middle) >= most) low = middle;
    else end = middle - 1;
  }
  kept.low = low;
  const float equal = most - from(low + 1);
  for (int first = 0, end = count; first < end; kept.end = first) {
    const int middle = first + (end - first) / 2;
    const float before = ponder_total(
        group, tokens, [=](float value, int place) { return ponder_order(value) == low && place < middle ? 1.0f : 0.0f; });
    if (before >= equal) end = middle;
    else first = middle + 1;
  }
  return kept;
}

// The first place at which the sum of weights up to there is above `share` of all; `likeliest` if nothing has a weight.
template <class Weight>
__device__ __forceinline__ int ponder_draw(const Weight& weight, int count, float share, int likeliest, float* sums) {
  const int warps = blockDim.x / 32, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  float before = 0, bound = -1;
  int start = 0, end = count;
  do {
    const int part = (end - start + warps - 1) / warps, first = start + warp * part, last = min(first + part, end);
    float sum = 0;
#pragma unroll 4
    for (int i = first + lane; i < last; i += 32) sum += weight(i);
    sum = ponder_warp_sum(sum);
    __syncthreads();
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (bound < 0) {
      float all = 0;
      for (int i = 0; i < warps; ++i) all += sums[i];
      if (!(all > 0)) return likeliest;
      bound = share * all;
    }
    // Roundings may leave the bound above all sums: then the last that has a weight.
    int found = -1, heavy = 0;
    float until = before, before_heavy = before;
    for (int i = 0; i < warps && found < 0; ++i) {
      if (sums[i] > 0) heavy = i, before_heavy = until;
      if (until + sums[i] > bound) found = i;
      else until += sums[i];
    }
    before = found < 0 ? before_heavy : until;
    start += (found < 0 ? heavy : found) * part;
    end = min(start + part, end);
  } while (end - start > 32);
  const float own = start + lane < end ? weight(start + lane) : 0.0f;
  float until = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float other = __shfl_up_sync(0xffffffffu, until, step);
    if (lane >= step) until += other;
  }
  const unsigned heavy = __ballot_sync(0xffffffffu, own > 0);
  const unsigned above = __ballot_sync(0xffffffffu, own > 0 && before + until > bound);
  if (heavy == 0) return likeliest;
  return start + (above ? __ffs(above) - 1 : 31 - __clz(heavy));
}

// The likeliest token, of equal ones the first, and its logit.
__device__ __forceinline__ void ponder_likeliest(const T* row, int count, float& most, int& place) {
  __shared__ float highest[32];
  __shared__ int places[32];
  most = NOTHING;
  place = 0x7fffffff;
  ponder_each(row, count, [&](float value, int at) {
    if (value > most) most = value, place = at;
  });
  const auto take = [&](float value, int at) {
    if (value > most || (value == most && at < place)) most = value, place = at;
  };
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) {
    const float value = __shfl_xor_sync(0xffffffffu, most, step);
    take(value, __shfl_xor_sync(0xffffffffu, place, step));
  }
  if ((threadIdx.x & 31) == 0) highest[threadIdx.x >> 5] = most, places[threadIdx.x >> 5] = place;
  __syncthreads();
  for (int warp = 0; warp < blockDim.x / 32; ++warp) take(highest[warp], places[warp]);
  // Nothing is greater than a row of NaN.
  if (place >= count) place = 0;
}

// A token that is drawn by the sampler's rules; all threads get it.
__device__ __forceinline__ int ponder_sample(
    const T* row, int count, const PonderSampler& sampler, float share, float most, int likeliest) {
  __shared__ float places_of_warps[32], candidates[CANDIDATES];
  __shared__ int candidate_places[CANDIDATES], held;
  __shared__ PonderKept shared_kept;
  const PonderGroup<false> block{places_of_warps};
  float sum = 0, masses[REACHED] = {}, counts[REACHED] = {};
  ponder_each(row, count, [&](float value, int) {
    const float weight = expf(value - most);
    sum += weight;
#pragma unroll
    for (int reach = 0; reach < REACHED; ++reach) {
      if (value >= most - REACHES[reach]) masses[reach] += weight, counts[reach] += 1.0f;
    }
  });
  sum = block.sum(sum);
  const PonderRow tokens{row, count, ponder_round(most + logf(sum))};
  const float highest = ponder_round(most - tokens.all);
  const unsigned high = ponder_order(highest);
  const unsigned least = sampler.log_min_p > 0 ? 0 : ponder_order(ponder_round(highest + ponder_round(sampler.log_min_p)));
  PonderKept kept{least, 0x7fffffff};
  if (sampler.top_p > 0 || sampler.top_k > 0) {
    float reach = -1;
#pragma unroll
    for (int i = 0; i < REACHED; ++i) {
      const float in_reach = block.sum(counts[i]), mass = block.sum(masses[i]);
      const bool enough = (sampler.top_p > 0 && mass >= sampler.top_p * sum) || (sampler.top_k > 0 && in_reach >= sampler.top_k);
      if (reach < 0 && enough && in_reach <= CANDIDATES) reach = REACHES[i];
    }
    if (threadIdx.x == 0) held = 0;
    __syncthreads();
    float mass = 0;
    tokens.each([&](float value, int place) {
      if (sampler.top_p > 0) mass += expf(value);
      if (reach > 0 && ponder_float(row[place]) >= most - reach) {
        const int free = atomicAdd(&held, 1);
        candidates[free] = value, candidate_places[free] = place;
      }
    });
    mass = sampler.top_p * block.sum(mass);
    const int few = held;
    const unsigned low = ponder_order(ponder_round(most - reach - tokens.all));
    if (reach < 0) {
      kept = ponder_keep(block, tokens, 0, high, mass, least, sampler.top_k, count);
    } else if (few > MANY) {
      const PonderCandidates some{candidates, candidate_places, few, static_cast<int>(blockDim.x)};
      kept = ponder_keep(block, some, low, high, mass, least, sampler.top_k, count);
    } else {
      if (threadIdx.x < 32) {
        const PonderCandidates some{candidates, candidate_places, few, 32};
        const PonderKept found = ponder_keep(PonderGroup<true>{nullptr}, some, low, high, mass, least, sampler.top_k, count);
        if (threadIdx.x == 0) shared_kept = found;
      }
      __syncthreads();
      kept = shared_kept;
    }
  }
  const float inverse = ponder_round(sampler.inverse), top = ponder_round(highest * inverse);
  const auto weight = [&](int place) {
    const float value = tokens.at(place);
    return kept.has(value, place) ? expf(ponder_round(value * inverse) - top) : 0.0f;
  };
  return ponder_draw(weight, count, share, likeliest, places_of_warps);
}

// Then the next step reads the token, one position further.
__device__ __forceinline__ void ponder_choose(
    const T* logits, unsigned* tokens, int* offsets, int* positions, PonderSampler* samplers, int count) {
  const T* row = logits + (long)blockIdx.x * count;
  PonderSampler sampler = samplers[blockIdx.x];
  float most;
  int token;
  ponder_likeliest(row, count, most, token);
  if (sampler.inverse > 0) {
    const float share = ponder_uniform(sampler.key);
    token = ponder_sample(row, count, sampler, share, most, token);
  }
  if (threadIdx.x != 0) return;
  tokens[blockIdx.x] = token;
  ++offsets[blockIdx.x];
  ++positions[blockIdx.x];
  samplers[blockIdx.x].key[0] = sampler.key[0];
  samplers[blockIdx.x].key[1] = sampler.key[1];
}
