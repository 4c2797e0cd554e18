// Definitions that all kernels use. T is the type of activations.
#define NOTHING __int_as_float(0xff800000)
// Lets the next launch of a graph come while this one runs; it waits for what this one writes.
__device__ __forceinline__ void ponder_let_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Waits for what the launches before write. Weights may be read before that.
__device__ __forceinline__ void ponder_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Sends for a line of 128 bytes, so that it is near when it is read. What it has may still change.
__device__ __forceinline__ void ponder_ahead(const void* place) { asm volatile("prefetch.global.L2 [%0];" ::"l"(place)); }
// The same for all lines, by the threads of a block.
__device__ __forceinline__ void ponder_all_ahead(const void* start, long bytes) {
  for (long at = threadIdx.x * 128l; at < bytes; at += blockDim.x * 128l) ponder_ahead(reinterpret_cast<const char*>(start) + at);
}

__device__ __forceinline__ float ponder_float(T value) { return static_cast<float>(value); }
__device__ __forceinline__ float ponder_round(float value) { return static_cast<float>(static_cast<T>(value)); }

__device__ __forceinline__ float ponder_warp_sum(float value) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// The sum over all threads of a block; `place` holds one number a warp and is used once.
__device__ __forceinline__ float ponder_block_sum(float value, float* place) {
  value = ponder_warp_sum(value);
  if ((threadIdx.x & 31) == 0) place[threadIdx.x >> 5] = value;
  __syncthreads();
  float all = 0;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) all += place[warp];
  return all;
}

// The activation of `gate` times `up`: SiLU, the tanh approximation of GELU, or gpt-oss' clipped SiLU.
__device__ __forceinline__ float ponder_gate(float gate, float up, int curve) {
  if (curve == 2) {
    gate = fminf(gate, 7.0f);
    up = fminf(fmaxf(up, -7.0f), 7.0f) + 1.0f;
    return up * gate / (1.0f + __expf(-1.702f * gate));
  }
  const float slope = curve == 1 ? 1.5957691216f * gate * (1.0f + 0.044715f * gate * gate) : gate;
  return up * gate / (1.0f + __expf(-slope));
}

template <class Numbers>
__device__ __forceinline__ int ponder_number(const Numbers& shape, int place) { return static_cast<int>(shape[place]) - 1; }

