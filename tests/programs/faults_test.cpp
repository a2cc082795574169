#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/buffer_pool.h"
#include "tests/catch.h"
#include "tests/failing_memory.h"
#include "tests/programs/composed_program.h"

namespace palimpsest::faults_test {
namespace {

/// The loss and the gradients.
using Results = std::vector<Tensor>;

struct Way {
  std::string name;
  std::function<std::shared_ptr<Evaluator>()> evaluator;
  RunOptions options = {};
  /// Another tape of the same evaluator ran the program before.
  bool again = false;
};

/// A program recorded on a tape and differentiated.
class Subject {
 public:
  Subject(const ProgramText& text, const Way& way)
      : text_(text), way_(way), tape_(way.evaluator()) {}

  /// Continues where a previous call stopped. Keeps the recording if it is complete.
  Results run() {
    if (!program_) {
      tape_.clear();
      tape_.set_generation(0);  // random operations draw the same numbers in every recording
      program_ = compose(tape_, text_);
    }
    const Gradients gradients = backward(program_->loss, way_.options);
    Results results{gradients.loss()};
    for (const Var& parameter : program_->parameters) results.push_back(gradients[parameter]);
    return results;
  }

  void start_over() { program_.reset(); }

 private:
  const ProgramText& text_;
  const Way& way_;
  Tape tape_;
  std::optional<ComposedProgram> program_;
};

/// Lets allocation `n` of a run fail. Afterwards the run must succeed twice, the second time from
/// the existing state. Returns whether there was such an allocation.
bool goes_on(const ProgramText& text, const Way& way, const Results& expected, std::int64_t n) {
  Subject subject(text, way);
  if (way.again) {
    subject.run();
    subject.start_over();
  }
  fail_allocation(n);
  try {
    subject.run();
  } catch (const std::bad_alloc&) {
  } catch (const EnvironmentError&) {
  }
  const bool failed = end_failing();
  for (int k = 0; k < 2; ++k) CHECK(std::ranges::equal(subject.run(), expected, same_bits));
  return failed;
}

std::int64_t left_behind(const std::function<void()>& work) {
  const std::int64_t before = allocations_held();
  work();
  return allocations_held() - before;
}

TEST_CASE("wherever a random program runs out of memory, it goes on when there is some again") {
  const RunOptions options{.threads = 1};
  RunOptions standard = options;
  standard.memory = AllocationPolicy::standard;
  RunOptions pooled = options;
  pooled.memory = AllocationPolicy::pooled;
  RunOptions cached = options;
  cached.memory = AllocationPolicy::cached;
  const std::vector<Way> ways{
      {"lazy", [] { return lazy(); }, options},
      {"lazy, again", [] { return lazy(); }, options, true},
      {"lazy, standard memory", [] { return lazy(); }, standard},
      {"lazy, pooled, again", [] { return lazy(); }, pooled, true},
      {"lazy, cached, again", [] { return lazy(); }, cached, true},
      {"eager", [] { return eager({.threads = 1}); }, options},
      {"eager in a budget, again", [] { return eager({.memory_budget = 1_GiB, .threads = 1}); },
       options, true},
      {"hybrid", [] { return hybrid({.threads = 1}, {.nodes = 7}); }, options},
  };
  const std::uint64_t programs = 8;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const ProgramText text = program_of(seed);
    for (std::size_t k = 0; k < 3; ++k) {
      const Way& way = ways[(3 * seed + k) % ways.size()];
      Results expected = Subject(text, way).run();
      bool failed = true;
      // Tries all of the first allocations, then ever fewer. The stride differs between programs.
      const auto stride = static_cast<std::int64_t>(7 + seed);
      for (std::int64_t n = 0; failed; n += 1 + n / stride) {
        INFO(to_string(text) << ", " << way.name << ", allocation " << n);
        const auto work = [&] { failed = goes_on(text, way, expected, n); };
        // Allocations that happen once per process do not recur in the second run.
        if (left_behind(work) != 0) CHECK(left_behind(work) == 0);
      }
    }
  }
}

TEST_CASE("a pool goes on where there was no memory to note what it keeps") {
  for (std::int64_t n = 0; n < 3; ++n) {
    CAPTURE(n);
    BufferPool pool{Meter()};
    pool.begin(1_MiB, 0);
    Buffer buffer = pool.allocate(640);
    fail_allocation(n);
    buffer.reset();
    const bool failed = end_failing();
    CHECK(failed == (n < 2));  // the entry for the size, and the list of its buffers
    CHECK(pool.kept() == (failed ? 0 : 640));
    buffer = pool.allocate(640);
    CHECK(buffer != nullptr);
  }
}

TEST_CASE("a program runs again after memory ran out while its tape grew", "[faults]") {
  int moves = 0;
  for (int others = 0; others < 40; ++others) {  // at some of them, the nodes move
    for (const std::int64_t before : {0, 1, 2}) {
      Tape tape(lazy({.threads = 1, .native = NativeCode::at_once}));
      const Var x = tape.constant(Tensor::uniform({200}, 1, 0.5, 2, DType::f64));
      const Var y = pow(x, 1.7) * 3.0 + exp(x);
      Var z = x;
      for (int i = 0; i < others; ++i) z = z + 1.5;
      const Tensor expected = y.value().clone();
      tape.drop(y.id());
      const Attributes* const first = &tape.attributes(0);
      const std::uint32_t epoch = tape.identity().epoch();
      fail_allocation(before);
      bool is_recorded = true;
      try {
        z = z * x;
      } catch (const std::bad_alloc&) {
        is_recorded = false;
      }
      end_failing();
      if (!is_recorded && &tape.attributes(0) != first) {
        ++moves;
        CHECK(tape.identity().epoch() > epoch);  // whoever knows an address must look again
      }
      CHECK(same_bits(y.value(), expected));
    }
  }
  CHECK(moves > 0);
}

}  // namespace

}  // namespace palimpsest::faults_test
