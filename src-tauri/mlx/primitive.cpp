// An operation of MLX whose computation on the processor is a function of this program. MLX's C interface has no such
// thing; `cpu-kernels` declares the same names in Rust.
#include <array>
#include <memory>
#include <vector>

#include "mlx/allocator.h"
#include "mlx/array.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"

namespace {

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

View view_of(mx::array& array) {
  View view{array.data<char>(), {}, {}, static_cast<int32_t>(array.ndim())};
  for (size_t axis = 0; axis < array.ndim(); axis++) {
    view.shape[axis] = array.shape(axis);
    view.strides[axis] = array.strides()[axis];
  }
  return view;
}

class Kernel : public mx::Primitive {
 public:
  Kernel(mx::Stream stream, std::shared_ptr<void> kernel, Compute compute)
      : Primitive(stream), kernel_(std::move(kernel)), compute_(compute) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    std::vector<View> views;
    views.reserve(inputs.size() + outputs.size());
    for (auto array : inputs) {
      views.push_back(view_of(array));
    }
    for (auto& array : outputs) {
      array.set_data(mx::allocator::malloc(array.nbytes()));
      views.push_back(view_of(array));
    }
    // MLX keeps inputs and outputs until what was dispatched is done.
    mx::cpu::get_command_encoder(stream()).dispatch(
        [kernel = kernel_, compute = compute_, count = inputs.size(), views = std::move(views)] {
          compute(kernel.get(), views.data(), views.data() + count);
        });
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("this operation computes on the processor alone");
  }

  const char* name() const override {
    return "PonderKernel";
  }

 private:
  std::shared_ptr<void> kernel_;
  Compute compute_;
};

// The handles of MLX's C interface.
struct Handle {
  void* ctx;
};

} // namespace

// Describes `outputs` arrays of `axes` axes each, whose lengths stand one after another in `shapes`, of 32 bit floats, and
// adds them to the list. It owns the kernel from here on, also when it fails.
extern "C" int ponder_kernel(
    Handle* list,
    const int32_t* shapes,
    const int32_t* axes,
    size_t outputs,
    const Handle* inputs,
    size_t count,
    void* kernel,
    Compute compute,
    Drop drop,
    Handle stream) {
  try {
    std::shared_ptr<void> owned(kernel, drop);
    std::vector<mx::array> arrays;
    for (size_t index = 0; index < count; index++) {
      arrays.push_back(*static_cast<mx::array*>(inputs[index].ctx));
      if (arrays.back().ndim() > AXES) {
        return 1;
      }
    }
    std::vector<mx::Shape> lengths;
    for (size_t index = 0; index < outputs; index++) {
      lengths.emplace_back(shapes, shapes + axes[index]);
      shapes += axes[index];
    }
    auto primitive =
        std::make_shared<Kernel>(*static_cast<mx::Stream*>(stream.ctx), std::move(owned), compute);
    auto made = mx::array::make_arrays(
        std::move(lengths), std::vector<mx::Dtype>(outputs, mx::float32), primitive, arrays);
    if (list->ctx == nullptr) {
      list->ctx = new std::vector<mx::array>(std::move(made));
    } else {
      *static_cast<std::vector<mx::array>*>(list->ctx) = std::move(made);
    }
    return 0;
  } catch (...) {
    return 1;
  }
}
