// Operations on single numbers of two arrays that broadcast to one shape of at most four axes, rounded one by one as MLX
// rounds them.
__device__ __forceinline__ void ponder_elementwise(
    const Shape& p_shape, const Shape& sizes, const T* a, const Shape& a_steps, const T* b, const Shape& b_steps, T* out) {
  const int count = ponder_number(p_shape, 1), i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  long from_a = 0, from_b = 0;
  int rest = i;
#pragma unroll
  for (int axis = 3; axis >= 0; --axis) {
    const int at = rest % sizes[axis];
    rest /= sizes[axis];
    from_a += (long)at * a_steps[axis];
    from_b += (long)at * b_steps[axis];
  }
  const float x = ponder_float(a[from_a]), y = ponder_float(b[from_b]);
  float made = 0;
  switch (ponder_number(p_shape, 0)) {
    case 0: made = x + y; break;
    case 1: made = x - y; break;
    case 2: made = x * y; break;
    case 3: made = x / y; break;
    case 4: made = tanhf(x); break;
    case 5: made = 1.0f / (1.0f + __expf(-x)); break;
    case 6: made = x * x; break;
  }
  out[i] = static_cast<T>(made);
}

__device__ __forceinline__ void ponder_elementwise_entry(
    const Shape& p_shape, const Shape& sizes, const void* a, const Shape& a_steps, const void* b, const Shape& b_steps, void* out) {
  ponder_elementwise(
      p_shape, sizes, reinterpret_cast<const T*>(a), a_steps, reinterpret_cast<const T*>(b), b_steps, reinterpret_cast<T*>(out));
}
