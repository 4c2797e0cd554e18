// Rows of x [rows, inputs] times a matrix [outputs, inputs]. A block makes 16 outputs of all rows; its warps share the
// inputs. Gated, every other warp has the tile of the second half of the matrix. With `bias`, that is added to each
// row after rounding.
template <int CODE, int GROUPS, int PARTS>
__device__ __forceinline__ void ponder_linear(
    const T* x, long next_row, int rows, const PonderMatrix& matrix, const T* bias, T* y, char* room, int outputs, int shift, int gated,
    int curve) {
  typedef PonderTile<CODE, GROUPS> Tile;
  const int lane = threadIdx.x & 31, warp = ponder_warp(), warps = blockDim.x / 32, all = 1 << gated;
  const int first = min(static_cast<int>(blockIdx.x) * 16, outputs - 16), half = warp & gated;
  char* rings = room + Tile::scale_bytes(matrix, all);
  Tile::send_scales(matrix, first, room, 0, all);
  if (gated) Tile::send_scales(matrix, outputs + first, room, 1, all);
  ponder_commit();
  Tile tile(matrix, rings + warp * Tile::ring_bytes(matrix, warps >> gated), half, all, shift, warp >> gated, warps >> gated);
  tile.start(matrix, half * outputs + first, room);
  ponder_arrived<DEPTH>();
  __syncthreads();
  ponder_wait();
  const T* from[PARTS];
  float sums[PARTS][4] = {};
#pragma unroll
  for (int part = 0; part < PARTS; ++part) from[part] = x + min(part * 8 + lane / 4, rows - 1) * next_row;
  tile.run(from, sums);
  float* places = reinterpret_cast<float*>(room);
  // The rings lie here as well.
  __syncthreads();
  ponder_leave(sums, rows, places);
  __syncthreads();
  const int height = rows * HEIGHT;
  for (int i = threadIdx.x; i < rows * 16; i += blockDim.x) {
    const int column = i / 16, output = i % 16;
    const float* at = places + column * HEIGHT + output;
    float made = ponder_gather(at, warps >> gated, height << gated);
    if (gated) made = ponder_gate(ponder_round(made), ponder_round(ponder_gather(at + height, warps >> 1, 2 * height)), curve);
    if (bias != nullptr) made = ponder_round(made) + ponder_float(bias[first + output]);
    y[(long)column * outputs + first + output] = static_cast<T>(made);
  }
}

template <int PARTS, class Shapes, class Steps>
__device__ __forceinline__ void ponder_rows(
    const Shapes& p_shape, const void* x, const Shapes& x_shape, const Steps& x_strides, const void* weight, const Shapes& weight_shape,
    const void* scales, const Shapes& scales_shape, const void* biases, const void* bias, void* y) {
  const auto number = [&](int place) { return ponder_number(p_shape, place); };
  __shared__ alignas(16) char room[ROOM];
  const int shift = number(1), gated = number(2), curve = number(3);
  const PonderMatrix matrix = {reinterpret_cast<const unsigned*>(weight), scales, biases, x_shape[1], scales_shape[1]};
  const T* x_ = reinterpret_cast<const T*>(x);
  const T* bias_ = number(4) ? reinterpret_cast<const T*>(bias) : nullptr;
  T* y_ = reinterpret_cast<T*>(y);
  const int rows = x_shape[0], outputs = weight_shape[0] >> gated;
  const long next = x_strides[0];
  switch (number(0)) {
    case 0: ponder_linear<4, 1, PARTS>(x_, next, rows, matrix, bias_, y_, room, outputs, shift, gated, curve); break;
    case 1: ponder_linear<4, 2, PARTS>(x_, next, rows, matrix, bias_, y_, room, outputs, shift, gated, curve); break;
    case 2: ponder_linear<8, 1, PARTS>(x_, next, rows, matrix, bias_, y_, room, outputs, shift, gated, curve); break;
    case 3: ponder_linear<8, 2, PARTS>(x_, next, rows, matrix, bias_, y_, room, outputs, shift, gated, curve); break;
    case 4: ponder_linear<MXFP4, 1, PARTS>(x_, next, rows, matrix, bias_, y_, room, outputs, shift, gated, curve); break;
    case 5: ponder_linear<16, 1, PARTS>(x_, next, rows, matrix, bias_, y_, room, outputs, shift, gated, curve); break;
  }
}
