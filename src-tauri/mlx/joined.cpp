// Operations of `kernel.h` that follow each other become one operation before they are computed, with the parts of arrays
// that they read and the rows that are written into keys and values. MLX takes some ten microseconds for an operation, as
// long as a small one computes, and what only the next one reads needs no array.
#include <cstring>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "files.h"

using namespace ponder;

namespace {

// Where an operand is: an input or an output of the joined operation, a place in memory that only it uses, or a part of one
// of these.
struct Operand {
  enum { INPUT, OUTPUT, INNER, PART } kind;
  size_t index;
};

// A part of an operand: elements from these places on.
struct Part {
  Operand of;
  mx::Shape start;
  mx::Shape shape;
  size_t itemsize;
};

// A joined operation ends after so many: each output holds all inputs, so that the work grows with their product.
constexpr size_t LONGEST = 48;

struct Step {
  std::shared_ptr<void> kernel;
  Compute compute;
  std::vector<Operand> operands;
  size_t inputs;
};

// The writing of rows into an array, in place if nothing else has it.
struct Update {
  mx::Shape start;
  size_t itemsize;
};

View part_of(View view, const mx::Shape& start, const mx::Shape& shape, size_t itemsize) {
  for (size_t axis = 0; axis < start.size(); axis++) {
    view.data = static_cast<char*>(view.data) + start[axis] * view.strides[axis] * static_cast<int64_t>(itemsize);
    view.shape[axis] = shape[axis];
  }
  return view;
}

// Copies elements of so many bytes from one view to another of the same shape, whose last axes are in one piece.
void copy_rows(const View& from, const View& to, size_t itemsize) {
  int64_t place[AXES] = {};
  int32_t last = from.axes - 1;
  size_t row = static_cast<size_t>(from.shape[last]) * itemsize;
  int32_t axis = last;
  while (axis >= 0) {
    int64_t source = 0;
    int64_t target = 0;
    for (int32_t each = 0; each < last; each++) {
      source += place[each] * from.strides[each];
      target += place[each] * to.strides[each];
    }
    auto bytes = static_cast<int64_t>(itemsize);
    std::memcpy(static_cast<char*>(to.data) + target * bytes, static_cast<const char*>(from.data) + source * bytes, row);
    for (axis = last - 1; axis >= 0 && ++place[axis] == from.shape[axis]; axis--) {
      place[axis] = 0;
    }
  }
}

// Inputs are the array and the rows.
void update(const void* what, const View* inputs, const View* outputs) {
  auto& update = *static_cast<const Update*>(what);
  if (inputs[0].data != outputs[0].data) {
    copy_rows(inputs[0], outputs[0], update.itemsize);
  }
  mx::Shape shape(inputs[1].shape, inputs[1].shape + inputs[1].axes);
  copy_rows(inputs[1], part_of(outputs[0], update.start, shape, update.itemsize), update.itemsize);
}

// How many references there are to what an array describes: an array is nothing but a shared pointer to that.
long references(const mx::array& array) {
  static_assert(sizeof(mx::array) == sizeof(std::shared_ptr<void>));
  return reinterpret_cast<const std::shared_ptr<void>&>(array).use_count();
}

// An array that lives from one step to another, at a place of the memory they share.
struct Inner {
  View view;
  size_t bytes;
  size_t place;
  size_t first;
  size_t last;
};

constexpr size_t ALIGNED = 64;

class Joined : public mx::Primitive {
 public:
  Joined(
      mx::Stream stream,
      std::vector<Step> steps,
      std::vector<Inner> inner,
      std::vector<Part> parts,
      std::vector<std::pair<size_t, size_t>> updated)
      : Primitive(stream),
        steps_(std::move(steps)),
        inner_(std::move(inner)),
        parts_(std::move(parts)),
        updated_(std::move(updated)) {
    // The first place that no array of the same time has.
    for (size_t index = 0; index < inner_.size(); index++) {
      Inner& own = inner_[index];
      own.place = 0;
      bool moved = true;
      while (moved) {
        moved = false;
        for (size_t before = 0; before < index; before++) {
          const Inner& other = inner_[before];
          bool together = other.first <= own.last && own.first <= other.last;
          if (together && own.place < other.place + other.bytes && other.place < own.place + own.bytes) {
            own.place = other.place + other.bytes;
            moved = true;
          }
        }
      }
      bytes_ = std::max(bytes_, own.place + own.bytes);
    }
  }

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    std::vector<View> known;
    std::vector<std::shared_ptr<void>> kept;
    for (auto& array : inputs) {
      known.push_back(view_of_input(array, stream(), kept));
    }
    // What the step before still reads is not alone before that is done; to wait takes less than to copy all positions.
    bool waited = false;
    for (auto [output, input] : updated_) {
      const mx::array& old = inputs[input];
      bool alone = references(old) == static_cast<long>(outputs.size());
      if (!alone || !old.flags().row_contiguous || old.data_size() != old.size()) {
        continue;
      }
      if (old.data_shared_ptr().use_count() > 1 && !waited) {
        mx::synchronize(stream());
        waited = true;
      }
      if (old.data_shared_ptr().use_count() == 1) {
        outputs[output].copy_shared_buffer(old);
      }
    }
    for (auto& array : outputs) {
      if (array.data_shared_ptr() == nullptr) {
        known.push_back(view_of_output(array));
      } else {
        known.push_back(view_of_shape(array.shape()));
        known.back().data = array.data<char>();
      }
    }
    // Where an operand lies; of what only this operation reads, how far from the beginning of its memory.
    auto view_of = [&](const Operand& operand, auto& self) -> std::pair<View, bool> {
      switch (operand.kind) {
        case Operand::INPUT:
          return {known[operand.index], false};
        case Operand::OUTPUT:
          return {known[operand.index + inputs.size()], false};
        case Operand::INNER: {
          View view = inner_[operand.index].view;
          view.data = reinterpret_cast<void*>(inner_[operand.index].place);
          return {view, true};
        }
        default: {
          const Part& part = parts_[operand.index];
          auto [whole, inner] = self(part.of, self);
          return {part_of(whole, part.start, part.shape, part.itemsize), inner};
        }
      }
    };
    std::vector<View> views;
    std::vector<size_t> inner;
    for (const Step& step : steps_) {
      for (const Operand& operand : step.operands) {
        auto [view, is_inner] = view_of(operand, view_of);
        if (is_inner) {
          inner.push_back(views.size());
        }
        views.push_back(view);
      }
    }
    // That memory is made when it is this operation's turn: ten may wait for theirs.
    mx::cpu::get_command_encoder(stream()).dispatch(
        [steps = steps_, kept = std::move(kept), views = std::move(views), inner = std::move(inner), bytes = bytes_] {
          auto memory = memory_of(bytes);
          std::vector<View> placed = views;
          for (size_t index : inner) {
            placed[index].data = static_cast<char*>(memory.get()) + reinterpret_cast<std::uintptr_t>(views[index].data);
          }
          const View* next = placed.data();
          for (const Step& step : steps) {
            step.compute(step.kernel.get(), next, next + step.inputs);
            next += step.operands.size();
          }
        });
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("this operation computes on the processor alone");
  }

  const char* name() const override {
    return "PonderJoined";
  }

 private:
  std::vector<Step> steps_;
  std::vector<Inner> inner_;
  std::vector<Part> parts_;
  // Outputs that are inputs with other rows.
  std::vector<std::pair<size_t, size_t>> updated_;
  size_t bytes_ = 0;
};

// The operations that are to be computed, each after those it reads. One with several outputs is there once, with the
// output that was met first.
struct Graph {
  std::vector<mx::array> order;
  std::unordered_set<std::uintptr_t> seen;

  void add(const mx::array& root) {
    // An operation and how many of its inputs were looked at.
    std::vector<std::pair<mx::array, size_t>> path;
    auto enter = [&](const mx::array& array) {
      if (array.status() == mx::array::unscheduled && array.has_primitive() && seen.insert(array.primitive_id()).second) {
        path.emplace_back(array, 0);
      }
    };
    enter(root);
    while (!path.empty()) {
      auto& [array, next] = path.back();
      if (next < array.inputs().size()) {
        mx::array input = array.inputs()[next++];
        enter(input);
      } else {
        order.push_back(array);
        path.pop_back();
      }
    }
  }
};

enum class Sort { KERNEL, PART, UPDATE, OTHER };

bool is_ones(const mx::Shape& strides) {
  return std::all_of(strides.begin(), strides.end(), [](auto stride) { return stride == 1; });
}

Sort sort_of(const mx::array& array) {
  auto& primitive = array.primitive();
  std::string_view name = primitive.name();
  if (name == "PonderKernel") {
    return Sort::KERNEL;
  }
  if (array.ndim() == 0 || array.ndim() > AXES || array.size() == 0) {
    return Sort::OTHER;
  }
  if (name == "Slice" && is_ones(std::get<2>(static_cast<mx::Slice&>(primitive).state()))) {
    return Sort::PART;
  }
  if (name == "SliceUpdate") {
    auto [reduced, start, end, strides] = static_cast<mx::SliceUpdate&>(primitive).state();
    bool rows = reduced == mx::SliceUpdate::None && is_ones(strides) && array.inputs().size() == 2;
    return rows && array.inputs()[1].size() > 0 ? Sort::UPDATE : Sort::OTHER;
  }
  return Sort::OTHER;
}

// The same operations; those that neither can be joined nor read what those that can make, such as the filling of new
// memory, come before all others, so that they part no run.
std::vector<mx::array> with_independent_first(std::vector<mx::array> order) {
  std::unordered_set<std::uintptr_t> independent;
  std::vector<mx::array> sorted;
  std::vector<mx::array> others;
  for (auto& array : order) {
    bool reads_none = std::all_of(array.inputs().begin(), array.inputs().end(), [&](const mx::array& input) {
      return input.status() != mx::array::unscheduled || !input.has_primitive() || independent.count(input.primitive_id());
    });
    if (reads_none && sort_of(array) == Sort::OTHER) {
      independent.insert(array.primitive_id());
      sorted.push_back(std::move(array));
    } else {
      others.push_back(std::move(array));
    }
  }
  std::move(others.begin(), others.end(), std::back_inserter(sorted));
  return sorted;
}

// Operations from `first` to before `end`, and how often they read each array.
struct Run {
  const std::vector<mx::array>& order;
  const std::unordered_set<std::uintptr_t>& roots;
  size_t first;
  size_t end;
  std::unordered_map<std::uintptr_t, long> uses;

  void count() {
    uses.clear();
    // Each output of an operation holds the inputs.
    for (size_t index = first; index < end; index++) {
      for (auto& input : order[index].inputs()) {
        uses[input.id()] += order[index].siblings().size() + 1;
      }
    }
  }

  // True if nothing but this run reads an output of the operation at `index`, of which `held` more references are known.
  bool is_inner(const mx::array& output, size_t index, long held) {
    long own = held + static_cast<long>(order[index].siblings().size()) + (output.id() == order[index].id() ? 1 : 0);
    return references(output) == own + uses[output.id()] && !roots.count(output.id());
  }

  // True if the operation cannot be part of this run: a part that others read too, or rows written to what is not an
  // input.
  bool is_refused(size_t index, const std::unordered_set<std::uintptr_t>& made) {
    const mx::array& array = order[index];
    switch (sort_of(array)) {
      case Sort::KERNEL:
        return false;
      case Sort::PART:
        return !is_inner(array, index, 0);
      case Sort::UPDATE:
        return made.count(array.inputs()[0].id()) > 0 || uses[array.inputs()[0].id()] != 1;
      default:
        return true;
    }
  }

  // Ends the run before the first operation that is refused.
  void cut() {
    for (bool whole = false; !whole;) {
      count();
      whole = true;
      std::unordered_set<std::uintptr_t> made;
      for (size_t index = first; index < end; index++) {
        if (is_refused(index, made)) {
          end = index;
          whole = false;
          break;
        }
        for (auto& output : order[index].outputs()) {
          made.insert(output.id());
        }
      }
    }
  }

  // Makes one operation of the run.
  void join() {
    std::unordered_map<std::uintptr_t, Operand> places;
    std::vector<mx::array> inputs;
    std::vector<mx::array> outputs;
    std::vector<mx::array> forgotten;
    std::vector<Inner> inner;
    std::vector<Part> parts;
    std::vector<std::pair<size_t, size_t>> updated;
    std::vector<Step> steps;
    mx::Stream stream = order[first].primitive().stream();
    auto read = [&](const mx::array& input, size_t index) {
      auto place = places.find(input.id());
      if (place == places.end()) {
        place = places.emplace(input.id(), Operand{Operand::INPUT, inputs.size()}).first;
        inputs.push_back(input);
      }
      Operand whole = place->second;
      while (whole.kind == Operand::PART) {
        whole = parts[whole.index].of;
      }
      if (whole.kind == Operand::INNER) {
        inner[whole.index].last = index;
      }
      return place->second;
    };
    for (size_t index = first; index < end; index++) {
      const mx::array& array = order[index];
      if (sort_of(array) == Sort::PART) {
        Operand of = read(array.inputs()[0], index);
        places.emplace(array.id(), Operand{Operand::PART, parts.size()});
        auto start = std::get<0>(static_cast<mx::Slice&>(array.primitive()).state());
        parts.push_back({of, start, array.shape(), array.itemsize()});
        continue;
      }
      Step step{nullptr, update, {}, array.inputs().size()};
      if (sort_of(array) == Sort::KERNEL) {
        auto& kernel = static_cast<Kernel&>(array.primitive());
        step.kernel = kernel.kernel();
        step.compute = kernel.compute();
      } else {
        auto start = std::get<1>(static_cast<mx::SliceUpdate&>(array.primitive()).state());
        step.kernel = std::make_shared<Update>(Update{start, array.itemsize()});
      }
      for (auto& input : array.inputs()) {
        step.operands.push_back(read(input, index));
      }
      for (auto& output : array.outputs()) {
        // Other references than those that are known: that of the list that is gone through here.
        if (is_inner(output, index, 1)) {
          size_t bytes = (output.nbytes() + ALIGNED - 1) / ALIGNED * ALIGNED;
          step.operands.push_back({Operand::INNER, inner.size()});
          inner.push_back({view_of_shape(output.shape()), bytes, 0, index, index});
          forgotten.push_back(output);
        } else {
          step.operands.push_back({Operand::OUTPUT, outputs.size()});
          outputs.push_back(output);
        }
        places.emplace(output.id(), step.operands.back());
      }
      if (sort_of(array) == Sort::UPDATE && step.operands[2].kind == Operand::OUTPUT) {
        updated.emplace_back(step.operands[2].index, step.operands[0].index);
      }
      steps.push_back(std::move(step));
    }
    // Siblings hold each other.
    for (auto& array : forgotten) {
      array.set_siblings({}, 0);
    }
    auto joined =
        std::make_shared<Joined>(stream, std::move(steps), std::move(inner), std::move(parts), std::move(updated));
    for (size_t index = 0; index < outputs.size(); index++) {
      auto siblings = outputs;
      siblings.erase(siblings.begin() + index);
      outputs[index].primitive_ptr() = joined;
      outputs[index].inputs() = inputs;
      outputs[index].set_siblings(std::move(siblings), index);
    }
  }
};

} // namespace

// Joins the operations that these arrays are made by.
extern "C" int ponder_join(Handle list) {
  try {
    auto& arrays = *static_cast<std::vector<mx::array>*>(list.ctx);
    Graph graph;
    std::unordered_set<std::uintptr_t> roots;
    for (auto& array : arrays) {
      roots.insert(array.id());
      graph.add(array);
    }
    auto& order = graph.order;
    std::for_each(order.begin(), order.end(), merge_reads);
    order = with_independent_first(std::move(order));
    for (size_t first = 0; first < order.size();) {
      auto stream = order[first].primitive().stream();
      size_t end = first;
      while (end < order.size() && end - first < LONGEST && sort_of(order[end]) != Sort::OTHER &&
             order[end].primitive().stream() == stream) {
        end++;
      }
      Run run{order, roots, first, end, {}};
      run.cut();
      if (run.end - first > 1) {
        run.join();
      }
      first = std::max(run.end, first + 1);
    }
    return 0;
  } catch (...) {
    return 1;
  }
}
