// The programs: what each launch of one gets. `p_shape` are its numbers plus one.
template <class Shapes, class Steps>
__device__ __forceinline__ void ponder_one(
    const Shapes& p_shape, const void* a, const Steps& a_strides, const void* b, const Steps& b_strides, const void* c, const void* d,
    void* out) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  const T* a_ = reinterpret_cast<const T*>(a);
  const T* b_ = reinterpret_cast<const T*>(b);
  const T* c_ = reinterpret_cast<const T*>(c);
  const T* d_ = reinterpret_cast<const T*>(d);
  T* out_ = reinterpret_cast<T*>(out);
  switch (number(0)) {
    case 1: {
      const int i = blockIdx.x * blockDim.x + threadIdx.x, width = number(1);
      const long row = blockIdx.y;
      if (i < width) {
        const bool joined = number(2);
        const T* gate = a_ + row * (joined ? 2 * width : a_strides[0]);
        const T* up = joined ? gate + width : b_ + row * b_strides[0];
        out_[row * width + i] = static_cast<T>(ponder_gate(ponder_float(gate[i]), ponder_float(up[i]), number(3)));
      }
      break;
    }
    case 2:
      ponder_residual(a_, b_, number(3) ? c_ : nullptr, number(4) ? d_ : nullptr, nullptr, out_, nullptr, number(1),
          __int_as_float(number(2)), blockIdx.x);
      break;
    case 3:
      ponder_heads(a_, b_, reinterpret_cast<const float*>(c), reinterpret_cast<const int*>(d), out_, out_, out_, number(1), 1, number(2),
          number(3), number(4), number(5), __int_as_float(number(6)), number(7));
      break;
    case 5: {
      const int i = blockIdx.x * blockDim.x + threadIdx.x, chosen = number(1), width = number(2);
      const long token = blockIdx.y;
      if (i < width) {
        float sum = 0;
        for (int each = 0; each < chosen; ++each) {
          sum += ponder_float(b_[token * b_strides[0] + each * b_strides[1]]) * ponder_float(a_[(token * chosen + each) * width + i]);
        }
        out_[token * width + i] = static_cast<T>(sum);
      }
      break;
    }
    case 4: ponder_norm(a_, b_, out_, number(1), number(2), __int_as_float(number(3))); break;
  }
}
