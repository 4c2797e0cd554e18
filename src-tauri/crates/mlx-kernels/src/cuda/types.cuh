// Types that MLX passes and computes in, so that no header of CUDA's is needed: `Shape` and `Strides` lie in memory as
// MLX's do.
struct Shape {
  int sizes[10];
  __device__ int operator[](int axis) const { return sizes[axis]; }
};
struct Strides {
  long long steps[10];
  __device__ long long operator[](int axis) const { return steps[axis]; }
};
struct BFloat16 {
  unsigned short bits;
  BFloat16() = default;
  __device__ explicit BFloat16(float value) {
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    const unsigned wide = __float_as_uint(value);
    // To the nearest, and to the even one of two.
    bits = value != value ? 0x7fff : (wide + 0x7fffu + ((wide >> 16) & 1)) >> 16;
#endif
  }
  __device__ operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};
struct Float16 {
  unsigned short bits;
  Float16() = default;
  __device__ explicit Float16(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  __device__ operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
};
