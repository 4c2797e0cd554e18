// The places of the greatest of a token's scores, the greatest first, and their softmax. One warp has a token.
template <class Shapes, class Steps>
__device__ __forceinline__ void ponder_route(
    const Shapes& p_shape, const void* scores, const Shapes& scores_shape, const Steps& scores_strides, void* places, void* shares) {
  constexpr int MOST = 16;
  const int lane = threadIdx.x, count = scores_shape[1], chosen = ponder_number(p_shape, 0);
  const T* row = reinterpret_cast<const T*>(scores) + (long)blockIdx.x * scores_strides[0];
  float value[MOST];
#pragma unroll
  for (int i = 0; i < MOST; ++i) value[i] = lane + 32 * i < count ? ponder_float(row[lane + 32 * i]) : NOTHING;
  float greatest = 0, own = 0, all = 0;
  int place = 0;
  for (int turn = 0; turn < chosen; ++turn) {
    float best = NOTHING;
    int at = lane;
#pragma unroll
    for (int i = 0; i < MOST; ++i) {
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
    for (int i = 0; i < MOST; ++i) {
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
  reinterpret_cast<unsigned*>(places)[(long)blockIdx.x * chosen + lane] = place;
  reinterpret_cast<T*>(shares)[(long)blockIdx.x * chosen + lane] = static_cast<T>(own / all);
}
