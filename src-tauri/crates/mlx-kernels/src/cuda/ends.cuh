// The ends of a step: rows of the embedding by the tokens, and the choice of the next ones.
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

__device__ __forceinline__ void ponder_ends(
    const Shape& p_shape, const void* a, const void* b, const void* c, const void* d, void* out) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  if (number(0) == 0) {
    ponder_embedding(reinterpret_cast<const unsigned*>(a), b, reinterpret_cast<const T*>(c), number(4) ? nullptr : reinterpret_cast<const T*>(d),
        reinterpret_cast<T*>(out), number(1), number(2), number(3));
  } else {
    ponder_choose(reinterpret_cast<const T*>(a), reinterpret_cast<unsigned*>(out), (int*)b, (int*)c, (PonderSampler*)d, number(1));
  }
}
