// The places of the greatest of a token's scores, the greatest first, and their softmax. A warp has a token; a lane has each
// 32nd score.
constexpr int SCORES = 16;
__device__ __forceinline__ void ponder_best(float (&value)[SCORES], int count, int chosen, unsigned* places, T* shares) {
  const int lane = threadIdx.x & 31;
  float greatest = 0, own = 0, all = 0;
  int place = 0;
  for (int turn = 0; turn < chosen; ++turn) {
    float best = NOTHING;
    int at = lane;
#pragma unroll
    for (int i = 0; i < SCORES; ++i) {
      if (value[i] > best) {
        best = value[i];
        at = lane + 32 * i;
      }
    }
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
      const float other = __shfl_xor_sync(0xffffffffu, best, step);
      const int other_at = __shfl_xor_sync(0xffffffffu, at, step);
      if (other > best || (other == best && other_at < at)) {
        best = other;
        at = other_at;
      }
    }
#pragma unroll
    for (int i = 0; i < SCORES; ++i) {
      if (lane + 32 * i == at) value[i] = NOTHING;
    }
    if (turn == 0) greatest = best;
    const float share = __expf(best - greatest);
    all += share;
    if (lane == turn) {
      own = share;
      // Scores that are no numbers choose nothing, and a place outside of the stack would be read.
      place = min(at, count - 1);
    }
  }
  if (lane >= chosen) return;
  places[lane] = place;
  shares[lane] = static_cast<T>(own / all);
}

template <class Shapes, class Steps>
__device__ __forceinline__ void ponder_route(
    const Shapes& p_shape, const void* scores, const Shapes& scores_shape, const Steps& scores_strides, void* places, void* shares) {
  const int lane = threadIdx.x, count = scores_shape[1], chosen = ponder_number(p_shape, 0);
  const T* const row = reinterpret_cast<const T*>(scores) + (long)blockIdx.x * scores_strides[0];
  float value[SCORES];
#pragma unroll
  for (int i = 0; i < SCORES; ++i) value[i] = lane + 32 * i < count ? ponder_float(row[lane + 32 * i]) : NOTHING;
  const long first = (long)blockIdx.x * chosen;
  ponder_best(value, count, chosen, reinterpret_cast<unsigned*>(places) + first, reinterpret_cast<T*>(shares) + first);
}
