// Tensors that lie in files. Each is read when it is computed, by several threads, and those that become one are read into
// the memory of that one: of a model that is loaded nothing is copied.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string_view>

#include "files.h"

using namespace ponder;

namespace {

// Bytes from which on memory is asked for in large pages: each page is cleared by the system when it is first written, and
// clearing small ones takes as long as reading.
constexpr size_t LARGE = size_t{4} << 20;
constexpr size_t LARGE_PAGE = size_t{2} << 20;

// Bytes of a part below which tensors are joined after they were read.
constexpr size_t SMALLEST_PART = size_t{16} << 10;

// Neighboring bytes of an open file.
struct Place {
  int descriptor;
  uint64_t offset;
  uint64_t bytes;
};

// Reads places one after another into memory; 0 if all could be read.
using ReadPlaces = int (*)(const Place* places, size_t count, char* to);

// An open file.
class File {
 public:
  explicit File(const char* path) : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) {
      throw std::runtime_error("a file of weights could not be opened");
    }
  }

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  ~File() {
    close(descriptor_);
  }

  int descriptor() const {
    return descriptor_;
  }

 private:
  int descriptor_;
};

// The same, of a file that is open as long as it.
struct Range {
  std::shared_ptr<File> file;
  uint64_t offset;
  size_t bytes;
};

// The tensor that ranges give one after another.
class Read : public mx::Primitive {
 public:
  Read(mx::Stream stream, ReadPlaces read, std::vector<Range> ranges)
      : Primitive(stream), read_(read), ranges_(std::move(ranges)) {}

  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>& outputs) override {
    auto& output = outputs[0];
    output.set_data(mx::allocator::malloc(output.nbytes()));
    if (output.nbytes() == 0) {
      return;
    }
    char* to = output.data<char>();
    ask_for_large_pages(to, output.nbytes());
    std::vector<Place> places;
    for (const Range& range : ranges_) {
      places.push_back({range.file->descriptor(), range.offset, range.bytes});
    }
    if (read_(places.data(), places.size(), to) != 0) {
      throw std::runtime_error("a file of weights ended early or could not be read");
    }
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("this operation computes on the processor alone");
  }

  const char* name() const override {
    return "PonderRead";
  }

  ReadPlaces read() const {
    return read_;
  }

  // Appends what lies in `bytes` from `start` on.
  void append_part(size_t start, size_t bytes, std::vector<Range>& to) const {
    for (const Range& range : ranges_) {
      size_t skipped = std::min(start, range.bytes);
      size_t taken = std::min(bytes, range.bytes - skipped);
      if (taken > 0) {
        to.push_back({range.file, range.offset + skipped, taken});
      }
      start -= skipped;
      bytes -= taken;
    }
  }

 private:
  static void ask_for_large_pages(char* memory, size_t bytes) {
    if (bytes < LARGE) {
      return;
    }
    auto start = (reinterpret_cast<std::uintptr_t>(memory) + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    auto end = reinterpret_cast<std::uintptr_t>(memory + bytes) / LARGE_PAGE * LARGE_PAGE;
    if (start < end) {
      madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
    }
  }

  ReadPlaces read_;
  std::vector<Range> ranges_;
};

bool is_read(const mx::array& array) {
  return array.status() == mx::array::unscheduled && array.has_primitive() &&
      std::string_view(array.primitive().name()) == "PonderRead";
}

// A type by its number in MLX's C interface.
mx::Dtype type_of(int32_t number) {
  static const std::vector<mx::Dtype> types = {
      mx::bool_,
      mx::uint8,
      mx::uint16,
      mx::uint32,
      mx::uint64,
      mx::int8,
      mx::int16,
      mx::int32,
      mx::int64,
      mx::float16,
      mx::float32,
      mx::float64,
      mx::bfloat16};
  return types.at(static_cast<size_t>(number));
}

} // namespace

namespace ponder {

void merge_reads(mx::array array) {
  if (array.size() == 0 || std::string_view(array.primitive().name()) != "Concatenate" ||
      !std::all_of(array.inputs().begin(), array.inputs().end(), is_read)) {
    return;
  }
  int axis = static_cast<mx::Concatenate&>(array.primitive()).state();
  size_t outer = 1;
  for (int before = 0; before < axis; before++) {
    outer *= array.shape(before);
  }
  ReadPlaces read = nullptr;
  std::vector<Range> ranges;
  for (size_t index = 0; index < outer; index++) {
    for (auto& input : array.inputs()) {
      size_t bytes = input.nbytes() / outer;
      if (outer > 1 && bytes < SMALLEST_PART) {
        return;
      }
      auto& part = static_cast<Read&>(input.primitive());
      part.append_part(index * bytes, bytes, ranges);
      read = part.read();
    }
  }
  array.primitive_ptr() = std::make_shared<Read>(array.primitive().stream(), read, std::move(ranges));
  array.inputs().clear();
}

} // namespace ponder

// Adds the tensors of a file to the list, each with the place of its first byte and its type; their lengths stand one
// after another in `shapes`.
extern "C" int ponder_file_tensors(
    Handle* list,
    const char* path,
    const uint64_t* offsets,
    const int32_t* types,
    const int32_t* shapes,
    const int32_t* axes,
    size_t count,
    ReadPlaces read_places,
    Handle stream) {
  try {
    auto file = std::make_shared<File>(path);
    std::vector<mx::array> tensors;
    for (size_t index = 0; index < count; index++) {
      mx::Shape shape(shapes, shapes + axes[index]);
      shapes += axes[index];
      mx::Dtype type = type_of(types[index]);
      size_t bytes = mx::size_of(type);
      for (auto length : shape) {
        bytes *= length;
      }
      auto read = std::make_shared<Read>(
          *static_cast<mx::Stream*>(stream.ctx), read_places, std::vector<Range>{{file, offsets[index], bytes}});
      tensors.emplace_back(std::move(shape), type, std::move(read), std::vector<mx::array>{});
    }
    list->ctx = new std::vector<mx::array>(std::move(tensors));
    return 0;
  } catch (...) {
    return 1;
  }
}
