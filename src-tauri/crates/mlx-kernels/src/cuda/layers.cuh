struct alignas(16) PonderEight { T e[8]; };
__device__ __forceinline__ PonderEight ponder_eight(const T* from, bool is_there) {
  PonderEight eight = {};
  if (is_there) eight = *reinterpret_cast<const PonderEight*>(from);
  return eight;
}

// A block has a row, eight numbers a thread: sum = (h + norm(x)·inner)·factor; normed = norm(sum)·outer, which a block may
// keep in shared memory as well. Rounds where the separate operations would. Null pointers leave their part out. All is
// read at once, because that is what takes time.
__device__ __forceinline__ void ponder_residual(
    const T* h, const T* x, const T* inner, const T* factor, const T* outer, T* sum, T* normed, int width, float eps, long row,
    T* kept = nullptr) {
  __shared__ float places[2][32];
  const int i = threadIdx.x * 8;
  const bool is_there = i < width;
  const long start = row * width + i;
  const PonderEight stream = ponder_eight(h + start, is_there), part = ponder_eight(x + start, is_there);
  const PonderEight of_inner = ponder_eight(inner + i, is_there && inner != nullptr);
  const PonderEight of_outer = ponder_eight(outer + i, is_there && outer != nullptr);
  const float times = factor != nullptr ? ponder_float(factor[0]) : 1.0f;
  float added[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) added[k] = ponder_float(part.e[k]);
  if (inner != nullptr) {
    float squares = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) squares += added[k] * added[k];
    const float scale = rsqrtf(ponder_block_sum(squares, places[0]) / width + eps);
#pragma unroll
    for (int k = 0; k < 8; ++k) added[k] = ponder_round(added[k] * scale * ponder_float(of_inner.e[k]));
  }
  float value[8], squares = 0;
  PonderEight made;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    value[k] = ponder_round(ponder_round(ponder_float(stream.e[k]) + added[k]) * times);
    squares += value[k] * value[k];
    made.e[k] = static_cast<T>(value[k]);
  }
  if (is_there && sum != nullptr) *reinterpret_cast<PonderEight*>(sum + start) = made;
  if (outer == nullptr) return;
  const float scale = rsqrtf(ponder_block_sum(squares, places[1]) / width + eps);
#pragma unroll
  for (int k = 0; k < 8; ++k) made.e[k] = static_cast<T>(value[k] * scale * ponder_float(of_outer.e[k]));
  if (is_there && normed != nullptr) *reinterpret_cast<PonderEight*>(normed + start) = made;
  if (is_there && kept != nullptr) *reinterpret_cast<PonderEight*>(kept + i) = made;
}

// One block a row: x / sqrt(mean(x²) + eps) times the factors of its head, of which there may be one.
__device__ __forceinline__ void ponder_norm(const T* x, const T* factors, T* out, int width, int heads, float eps) {
  __shared__ float places[32];
  const T* row = x + (long)blockIdx.x * width;
  const T* own = factors + (long)(blockIdx.x % heads) * width;
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) squares += ponder_float(row[i]) * ponder_float(row[i]);
  const float scale = rsqrtf(ponder_block_sum(squares, places) / width + eps);
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    out[(long)blockIdx.x * width + i] = static_cast<T>(ponder_float(row[i]) * scale * ponder_float(own[i]));
  }
}

// One block a head of a position, one thread a pair of elements. Norms the first `normed` heads, turns queries and
// keys, and lays queries, keys and values out as [heads, length, width]; with `each`, a position is that of a sequence of
// its own, and they lie as [length, heads, width].
__device__ __forceinline__ void ponder_heads(
    const T* all, const T* factors, const float* periods, const int* offset, T* queries, T* keys, T* values,
    int heads, int key_heads, int width, int normed, int rotated, bool neighbours, float eps, bool each) {
  __shared__ float places[32];
  const int head = blockIdx.x, position = blockIdx.y, length = gridDim.y, pair = threadIdx.x;
  const bool turns = pair < rotated / 2;
  const int one = neighbours ? 2 * pair : (turns ? pair : rotated + 2 * (pair - rotated / 2));
  const int other = neighbours || !turns ? one + 1 : pair + rotated / 2;
  const T* in = all + ((long)position * gridDim.x + head) * width;
  float a = ponder_float(in[one]), b = ponder_float(in[other]);
  if (head < normed) {
    const float scale = rsqrtf(ponder_block_sum(a * a + b * b, places) / width + eps);
    a = ponder_round(ponder_round(a * scale) * ponder_float(factors[head * width + one]));
    b = ponder_round(ponder_round(b * scale) * ponder_float(factors[head * width + other]));
  }
  if (head < heads + key_heads && turns) {
    const float angle = static_cast<float>(each ? offset[position] : offset[0] + position) / periods[pair];
    float sine, cosine;
    sincosf(angle, &sine, &cosine);
    const float kept = a;
    a = kept * cosine - b * sine;
    b = kept * sine + b * cosine;
  }
  const int row = head < heads ? head : (head - heads) % key_heads;
  T* out = head < heads ? queries : (head < heads + key_heads ? keys : values);
  const int rows = head < heads ? heads : key_heads;
  out += (each ? (long)position * rows + row : (long)row * length + position) * width;
  out[one] = static_cast<T>(a);
  out[other] = static_cast<T>(b);
}

template <class Shapes>
__device__ __forceinline__ void ponder_two(
    const Shapes& p_shape, const void* a, const void* b, const void* c, const void* d, const void* e, void* sum, void* normed) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  ponder_residual(reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), number(2) ? reinterpret_cast<const T*>(c) : nullptr,
      number(3) ? reinterpret_cast<const T*>(d) : nullptr, reinterpret_cast<const T*>(e), reinterpret_cast<T*>(sum),
      reinterpret_cast<T*>(normed), number(0), __int_as_float(number(1)), blockIdx.x);
}

template <class Shapes>
__device__ __forceinline__ void ponder_three(
    const Shapes& p_shape, const void* a, const void* b, const void* c, const void* d, void* queries, void* keys, void* values) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  ponder_heads(reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), reinterpret_cast<const float*>(c),
      reinterpret_cast<const int*>(d), reinterpret_cast<T*>(queries), reinterpret_cast<T*>(keys), reinterpret_cast<T*>(values), number(0),
      number(1), number(2), number(3), number(4), number(5), __int_as_float(number(6)), number(7));
}
