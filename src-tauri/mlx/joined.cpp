// Operations of `kernel.h` that follow each other become one operation before they are computed. MLX takes some ten
// microseconds for an operation, as long as a small one computes, and what only the next one reads needs no array.
#include <unordered_map>
#include <unordered_set>

#include "kernel.h"

using namespace ponder;

namespace {

// Where an operand is: an input or an output of the joined operation, or a place in memory that only it uses.
struct Operand {
  enum { INPUT, OUTPUT, INNER } kind;
  size_t index;
};

struct Step {
  std::shared_ptr<void> kernel;
  Compute compute;
  std::vector<Operand> operands;
  size_t inputs;
};

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
  Joined(mx::Stream stream, std::vector<Step> steps, std::vector<Inner> inner)
      : Primitive(stream), steps_(std::move(steps)), inner_(std::move(inner)) {
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
    for (auto& array : outputs) {
      known.push_back(view_of_output(array));
    }
    kept.push_back(memory_of(bytes_));
    char* start = static_cast<char*>(kept.back().get());
    std::vector<View> views;
    for (const Step& step : steps_) {
      for (const Operand& operand : step.operands) {
        if (operand.kind == Operand::INNER) {
          views.push_back(inner_[operand.index].view);
          views.back().data = start + inner_[operand.index].place;
        } else {
          views.push_back(known[operand.index + (operand.kind == Operand::OUTPUT ? inputs.size() : 0)]);
        }
      }
    }
    mx::cpu::get_command_encoder(stream()).dispatch(
        [steps = steps_, kept = std::move(kept), views = std::move(views)] {
          const View* next = views.data();
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
  size_t bytes_ = 0;
};

// How many references there are to what an array describes: an array is nothing but a shared pointer to that.
long references(const mx::array& array) {
  static_assert(sizeof(mx::array) == sizeof(std::shared_ptr<void>));
  return reinterpret_cast<const std::shared_ptr<void>&>(array).use_count();
}

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

// Makes one operation of those from `first` to before `end`.
void join_run(const std::vector<mx::array>& order, size_t first, size_t end, const std::unordered_set<std::uintptr_t>& roots) {
  std::unordered_map<std::uintptr_t, Operand> places;
  std::unordered_map<std::uintptr_t, long> uses;
  std::vector<mx::array> inputs;
  std::vector<mx::array> outputs;
  std::vector<mx::array> forgotten;
  std::vector<Inner> inner;
  // Each output of an operation holds the inputs.
  for (size_t index = first; index < end; index++) {
    for (auto& input : order[index].inputs()) {
      uses[input.id()] += order[index].siblings().size() + 1;
    }
  }
  std::vector<Step> steps;
  mx::Stream stream = order[first].primitive().stream();
  for (size_t index = first; index < end; index++) {
    auto& kernel = static_cast<Kernel&>(order[index].primitive());
    Step step{kernel.kernel(), kernel.compute(), {}, order[index].inputs().size()};
    for (auto& input : order[index].inputs()) {
      auto place = places.find(input.id());
      if (place == places.end()) {
        place = places.emplace(input.id(), Operand{Operand::INPUT, inputs.size()}).first;
        inputs.push_back(input);
      }
      if (place->second.kind == Operand::INNER) {
        inner[place->second.index].last = index;
      }
      step.operands.push_back(place->second);
    }
    // References by siblings, by what `outputs` returns, and by the order.
    auto all = order[index].outputs();
    for (auto& output : all) {
      long own = static_cast<long>(all.size()) + (output.id() == order[index].id() ? 1 : 0);
      bool is_inner = references(output) == own + uses[output.id()] && !roots.count(output.id());
      if (is_inner) {
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
    steps.push_back(std::move(step));
  }
  // Siblings hold each other.
  for (auto& array : forgotten) {
    array.set_siblings({}, 0);
  }
  auto joined = std::make_shared<Joined>(stream, std::move(steps), std::move(inner));
  for (size_t index = 0; index < outputs.size(); index++) {
    auto siblings = outputs;
    siblings.erase(siblings.begin() + index);
    outputs[index].primitive_ptr() = joined;
    outputs[index].inputs() = inputs;
    outputs[index].set_siblings(std::move(siblings), index);
  }
}

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
    for (size_t first = 0; first < order.size();) {
      size_t end = first;
      while (end < order.size() && typeid(order[end].primitive()) == typeid(Kernel) &&
             order[end].primitive().stream() == order[first].primitive().stream()) {
        end++;
      }
      if (end - first > 1) {
        join_run(order, first, end, roots);
      }
      first = std::max(end, first + 1);
    }
    return 0;
  } catch (...) {
    return 1;
  }
}
