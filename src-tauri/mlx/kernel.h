// Operations of MLX whose computation on the processor is a function of this program. MLX's C interface has no such thing;
// `cpu-kernels` declares the same names in Rust.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "mlx/allocator.h"
#include "mlx/array.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"

namespace ponder {

namespace mx = mlx::core;

// The memory of an array: strides count elements. An array has at most so many axes.
constexpr size_t AXES = 4;

struct View {
  void* data;
  int64_t shape[AXES];
  int64_t strides[AXES];
  int32_t axes;
};

using Compute = void (*)(const void* kernel, const View* inputs, const View* outputs);
using Drop = void (*)(void* kernel);

// The memory of a row contiguous array that has none yet.
inline View view_of_shape(const mx::Shape& shape) {
  View view{nullptr, {}, {}, static_cast<int32_t>(shape.size())};
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    view.shape[axis] = shape[axis];
    view.strides[axis] = stride;
    stride *= shape[axis];
  }
  return view;
}

// Memory of so many bytes that lives as long as something holds it.
inline std::shared_ptr<void> memory_of(size_t bytes) {
  auto buffer = mx::allocator::malloc(bytes);
  return {buffer.raw_ptr(), [buffer](void*) { mx::allocator::free(buffer); }};
}

// Copies the elements of a view, of so many bytes each, one after another.
inline void copy_elements(const View& from, size_t bytes, char* to) {
  int64_t place[AXES] = {};
  int32_t axis = from.axes - 1;
  while (axis >= 0) {
    int64_t offset = 0;
    for (int32_t each = 0; each < from.axes; each++) {
      offset += place[each] * from.strides[each];
    }
    std::memcpy(to, static_cast<const char*>(from.data) + offset * static_cast<int64_t>(bytes), bytes);
    to += bytes;
    for (axis = from.axes - 1; axis >= 0 && ++place[axis] == from.shape[axis]; axis--) {
      place[axis] = 0;
    }
  }
}

// The memory of an input. Kernels read the last axis as one piece: of one with gaps they read a copy, which `kept` holds.
inline View view_of_input(const mx::array& array, mx::Stream stream, std::vector<std::shared_ptr<void>>& kept) {
  View view = view_of_shape(array.shape());
  size_t last = array.ndim();
  if (last > 0 && array.shape(-1) > 1 && array.strides()[last - 1] != 1 && array.size() > 0) {
    View gaps = view;
    gaps.data = const_cast<char*>(array.data<char>());
    std::copy(array.strides().begin(), array.strides().end(), gaps.strides);
    kept.push_back(memory_of(array.nbytes()));
    view.data = kept.back().get();
    mx::cpu::get_command_encoder(stream).dispatch(
        [gaps, bytes = array.itemsize(), to = static_cast<char*>(view.data)] { copy_elements(gaps, bytes, to); });
    return view;
  }
  view.data = const_cast<char*>(array.data<char>());
  std::copy(array.strides().begin(), array.strides().end(), view.strides);
  return view;
}

// The memory of an output, which is made.
inline View view_of_output(mx::array& array) {
  array.set_data(mx::allocator::malloc(array.nbytes()));
  View view = view_of_shape(array.shape());
  view.data = array.data<char>();
  return view;
}

class Kernel : public mx::Primitive {
 public:
  Kernel(mx::Stream stream, std::shared_ptr<void> kernel, Compute compute)
      : Primitive(stream), kernel_(std::move(kernel)), compute_(compute) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    std::vector<View> views;
    std::vector<std::shared_ptr<void>> kept;
    views.reserve(inputs.size() + outputs.size());
    for (auto& array : inputs) {
      views.push_back(view_of_input(array, stream(), kept));
    }
    for (auto& array : outputs) {
      views.push_back(view_of_output(array));
    }
    // MLX keeps inputs and outputs until what was dispatched is done.
    mx::cpu::get_command_encoder(stream()).dispatch(
        [kernel = kernel_, compute = compute_, count = inputs.size(), views = std::move(views), kept = std::move(kept)] {
          compute(kernel.get(), views.data(), views.data() + count);
        });
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("this operation computes on the processor alone");
  }

  const char* name() const override {
    return "PonderKernel";
  }

  const std::shared_ptr<void>& kernel() const {
    return kernel_;
  }

  Compute compute() const {
    return compute_;
  }

 private:
  std::shared_ptr<void> kernel_;
  Compute compute_;
};

// The handles of MLX's C interface.
struct Handle {
  void* ctx;
};

} // namespace ponder
