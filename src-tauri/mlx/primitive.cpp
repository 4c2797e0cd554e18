// The description of an operation: see `kernel.h`.
#include "kernel.h"

using namespace ponder;

// Describes `outputs` arrays of `axes` axes each, whose lengths stand one after another in `shapes`, of floats of as many
// `bytes`, 2 or 4, and adds them to the list. It owns the kernel from here on, also when it fails.
extern "C" int ponder_kernel(
    Handle* list,
    const int32_t* shapes,
    const int32_t* axes,
    const int32_t* bytes,
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
    std::vector<mx::Dtype> types;
    for (size_t index = 0; index < outputs; index++) {
      lengths.emplace_back(shapes, shapes + axes[index]);
      shapes += axes[index];
      types.push_back(bytes[index] == 2 ? mx::float16 : mx::float32);
    }
    auto primitive =
        std::make_shared<Kernel>(*static_cast<mx::Stream*>(stream.ctx), std::move(owned), compute);
    auto made = mx::array::make_arrays(std::move(lengths), types, primitive, arrays);
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
