// The ends of a step: rows of the embedding by the tokens, and the likeliest token of each row of logits.
__device__ __forceinline__ void ponder_embedding(
    const unsigned* ids, const void* table, const T* scales, const T* biases, T* rows, int width, int bits, int group) {
  const long id = ids[blockIdx.x];
  T* row = rows + (long)blockIdx.x * width;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    if (bits == 0) {
      row[i] = reinterpret_cast<const T*>(table)[id * width + i];
      continue;
    }
    const int each = 32 / bits;
    const unsigned word = reinterpret_cast<const unsigned*>(table)[id * (width / each) + i / each];
    const unsigned number = (word >> (bits * (i % each))) & ((1u << bits) - 1);
    const long at = id * (width / group) + i / group;
    if (biases == nullptr) {
      // MXFP4: a sign, two bits of exponent and one of mantissa, with a power of two for each group.
      const int place = number >> 1 & 3, half = number & 1;
      const float size = place == 0 ? 0.5f * half : (1 << (place - 1)) * (1.0f + 0.5f * half);
      const float scale = __uint_as_float(static_cast<unsigned>(reinterpret_cast<const unsigned char*>(scales)[at]) << 23);
      row[i] = static_cast<T>((number & 8 ? -size : size) * scale);
      continue;
    }
    row[i] = static_cast<T>(static_cast<float>(number) * ponder_float(scales[at]) + ponder_float(biases[at]));
  }
}

// One block a row; of equal logits the first. Then the next step reads that token, one position further.
__device__ __forceinline__ void ponder_likeliest(const T* logits, unsigned* tokens, int* offsets, int* positions, int count) {
  __shared__ float highest[32];
  __shared__ int places[32];
  const T* row = logits + (long)blockIdx.x * count;
  float most = NOTHING;
  int place = 0x7fffffff;
  struct alignas(8 * sizeof(T) < 16 ? 8 * sizeof(T) : 16) Eight { T e[8]; };
  // A row of an odd length begins anywhere.
  const int eights = count % 8 == 0 ? count / 8 : 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight eight = reinterpret_cast<const Eight*>(row)[i];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float value = ponder_float(eight.e[e]);
      if (value > most) {
        most = value;
        place = i * 8 + e;
      }
    }
  }
  for (int i = eights * 8 + threadIdx.x; i < count; i += blockDim.x) {
    const float value = ponder_float(row[i]);
    if (value > most) {
      most = value;
      place = i;
    }
  }
  const auto take = [&](float value, int at) {
    if (value > most || (value == most && at < place)) {
      most = value;
      place = at;
    }
  };
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) {
    const float value = __shfl_xor_sync(0xffffffffu, most, step);
    take(value, __shfl_xor_sync(0xffffffffu, place, step));
  }
  if ((threadIdx.x & 31) == 0) {
    highest[threadIdx.x >> 5] = most;
    places[threadIdx.x >> 5] = place;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < blockDim.x / 32; ++warp) take(highest[warp], places[warp]);
  // Nothing is greater than a row of NaN.
  tokens[blockIdx.x] = place < count ? place : 0;
  ++offsets[blockIdx.x];
  ++positions[blockIdx.x];
}

__device__ __forceinline__ void ponder_ends(
    const Shape& p_shape, const void* a, const void* b, const void* c, const void* d, void* out) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  if (number(0) == 0) {
    ponder_embedding(reinterpret_cast<const unsigned*>(a), b, reinterpret_cast<const T*>(c), number(4) ? nullptr : reinterpret_cast<const T*>(d),
        reinterpret_cast<T*>(out), number(1), number(2), number(3));
  } else {
    ponder_likeliest(reinterpret_cast<const T*>(a), reinterpret_cast<unsigned*>(out), (int*)b, (int*)c, number(1));
  }
}
