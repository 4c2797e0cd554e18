// A row x [1, inputs] times a matrix [outputs, inputs], with a bias or gated by the second half of the outputs.
template <int CODE, int GROUP>
__device__ __forceinline__ void ponder_row_linear(
    const T* row, const PonderMatrix& matrix, const T* bias, T* y, char* room, int outputs, int gated, int curve) {
  typedef PonderX<CODE, GROUP> X;
  const X x = {room + ROW_PLACES * 4, (matrix.inputs + X::PASS - 1) / X::PASS};
  const auto stage = [&] {
    ponder_wait();
    const auto read = [&](int eighth) { return X::read(row, matrix.inputs, eighth); };
    PonderEighths eighths;
    eighths.load(0, x.eighths(), read);
    x.put_zeros();
    eighths.put(x.eighths(), read, [&](int eighth, const PonderEight& numbers) { x.put(eighth, numbers); });
  };
  const auto finish = [&](int output, float made, float second) {
    if (gated) made = ponder_gate(ponder_round(made), ponder_round(second), curve);
    if (bias != nullptr) made = ponder_round(made) + ponder_float(bias[output]);
    y[output] = static_cast<T>(made);
  };
  ponder_row(matrix, 0, outputs, gated, x, reinterpret_cast<float*>(room), stage, finish);
}

template <class Shapes>
__device__ __forceinline__ void ponder_row_entry(
    const Shapes& p_shape, const void* x, const Shapes& x_shape, const void* weight, const Shapes& weight_shape, const void* scales,
    const Shapes& scales_shape, const void* biases, const void* bias, void* y) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  __shared__ alignas(16) char room[ROOM];
  const int gated = number(2), curve = number(3), outputs = weight_shape[0] >> gated;
  const PonderMatrix matrix = {reinterpret_cast<const unsigned*>(weight), scales, biases, x_shape[1], scales_shape[1]};
  const T* const row = reinterpret_cast<const T*>(x);
  const T* const own_bias = number(4) ? reinterpret_cast<const T*>(bias) : nullptr;
  T* const made = reinterpret_cast<T*>(y);
  switch (number(0) * 2 + number(1)) {
    case 0: ponder_row_linear<4, 64>(row, matrix, own_bias, made, room, outputs, gated, curve); break;
    case 1: ponder_row_linear<4, 128>(row, matrix, own_bias, made, room, outputs, gated, curve); break;
    case 2: ponder_row_linear<4, 32>(row, matrix, own_bias, made, room, outputs, gated, curve); break;
    case 4: ponder_row_linear<8, 64>(row, matrix, own_bias, made, room, outputs, gated, curve); break;
    case 5: ponder_row_linear<8, 128>(row, matrix, own_bias, made, room, outputs, gated, curve); break;
    case 6: ponder_row_linear<8, 32>(row, matrix, own_bias, made, room, outputs, gated, curve); break;
    case 8: ponder_row_linear<MXFP4, 32>(row, matrix, own_bias, made, room, outputs, gated, curve); break;
  }
}
