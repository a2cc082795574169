#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "autodiff/custom.h"
#include "checkpoint/reverse/reverse.h"
#include "data/data.h"
#include "palimpsest.h"
#include "strategy/execution/layer_checkpointing/layer_checkpointer.h"
#include "strategy/training/training.h"
#include "tests/catch.h"
#include "tests/strategy/meanwhile.h"

// Functions of the user call public functions of the object that calls them. Tapes are in
// `tests/strategy/reentrance_test.cpp`.

namespace palimpsest::reentrance_of_objects_test {
namespace {

using Numbers = std::vector<double>;
using Call = std::function<void()>;
using MeanwhilePtr = std::shared_ptr<Meanwhile>;

/// An object that calls functions of the user.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Uses the object. One of its functions of the user makes the call.
  virtual Numbers run(const std::string& caller, const MeanwhilePtr& meanwhile) = 0;
  virtual std::vector<std::string> callers() const = 0;
  /// Public functions that change the object, or read what it changes.
  virtual std::vector<std::pair<std::string, Call>> functions() = 0;

 protected:
  /// Makes the call if this function of the user is to do so.
  void call(const std::string& here) const {
    MeanwhilePtr meanwhile;
    {
      const std::lock_guard lock(mutex_);
      if (here == caller_) meanwhile = meanwhile_;
    }
    if (meanwhile != nullptr) (*meanwhile)();
  }
  void set_call(const std::string& caller, const MeanwhilePtr& meanwhile) {
    const std::lock_guard lock(mutex_);
    caller_ = caller;
    meanwhile_ = meanwhile;
  }

 private:
  mutable std::mutex mutex_;  // a loader's thread makes batches after the run
  std::string caller_;
  MeanwhilePtr meanwhile_;
};

Numbers numbers_of(const Tensor& tensor) {
  Numbers numbers;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) numbers.push_back(tensor.at(i));
  return numbers;
}

const Tensor& start() {
  static const Tensor tensor = Tensor::uniform({4, 6}, 1, -1, 1, DType::f64);
  return tensor;
}

class Operation {
 public:
  explicit Operation(Call call) {
    CustomDefinition definition;
    definition.name = "spy";
    definition.forward = [call = std::move(call)](const CustomCall& c) {
      std::memcpy(c.outputs[0].raw(), c.inputs[0].raw(),
                  static_cast<std::size_t>(c.inputs[0].bytes()));
      call();
    };
    definition.vjp = [](const Pullback& p) { p.set(0, p.adjoint(0)); };
    operation_.emplace(definition);
  }
  Var operator()(const Var& x) const { return (*operation_)({x}); }

 private:
  std::optional<CustomOperation> operation_;
};

class RunnerSubject final : public Subject {
 public:
  explicit RunnerSubject(int threads)
      : runner_(Program::gradients(
            [this](Tape& tape) {
              x_ = tape.parameter(start());
              return sum(square(spy_(sin(x_))));
            },
            {.threads = threads,
             .native = NativeCode::off,
             .progress = on_progress([this](const RunProgress&) { call("progress"); })})) {}

  std::vector<std::string> callers() const override { return {"progress", "forward"}; }
  Numbers run(const std::string& caller, const MeanwhilePtr& meanwhile) override {
    set_call(caller, meanwhile);
    runner_.run();
    return numbers_of(runner_.gradients()[x_]);
  }
  std::vector<std::pair<std::string, Call>> functions() override {
    return {{"bind", [this] { runner_.bind(x_, Tensor::ones({4, 6}, DType::f64)); }},
            {"run", [this] { runner_.run(); }},
            {"value", [this] { static_cast<void>(runner_.value(x_)); }},
            {"gradients", [this] { static_cast<void>(runner_.gradients()); }},
            {"report", [this] { static_cast<void>(runner_.report()); }}};
  }

 private:
  Operation spy_{[this] { call("forward"); }};
  Var x_;
  Runner runner_;
};

class ExecutionSubject final : public Subject {
 public:
  ExecutionSubject(int threads, ParallelMode parallelism) {
    ExecutionStrategy strategy;
    strategy.run.threads = threads;
    strategy.run.native = NativeCode::off;
    strategy.run.progress = on_progress([this](const RunProgress&) { call("progress"); });
    strategy.parallelism = parallelism;
    if (parallelism == ParallelMode::pipeline) strategy.stages = 2;
    execution_.emplace(strategy);
  }

  std::vector<std::string> callers() const override { return {"model", "progress", "forward"}; }
  Numbers run(const std::string& caller, const MeanwhilePtr& meanwhile) override {
    set_call(caller, meanwhile);
    return numbers_of(gradients());
  }
  std::vector<std::pair<std::string, Call>> functions() override {
    return {{"gradients", [this] { gradients(); }},
            {"value",
             [this] {
               const std::vector<Tensor> parameters{start()};
               const std::vector<Tensor> batch{Tensor::ones({4, 1}, DType::f64)};
               static_cast<void>(execution_->value(model_, parameters, batch));
             }},
            {"check_state", [this] { execution_->check_state(saved_); }},
            {"load_state", [this] { execution_->load_state(saved_); }}};
  }

 private:
  Tensor gradients() {
    const std::vector<Tensor> parameters{start()};
    const std::vector<Tensor> batch{Tensor::ones({4, 1}, DType::f64)};
    return execution_->gradients(model_, parameters, batch).entries()[0].gradient;
  }

  Operation spy_{[this] { call("forward"); }};
  ModelFunction model_ = [this](Tape&, std::span<const Var> p, std::span<const Var> b) {
    call("model");
    return LossAndOutputs{mean(square(matmul(spy_(tanh(b[0])), sum(p[0], 0, true))))};
  };
  std::optional<Execution> execution_;
  NamedTensors saved_ = Execution().state();
};

class OwnOptimizer final : public Optimizer {
 public:
  OwnOptimizer(std::vector<ParameterGroup> groups, Call call)
      : Optimizer({.name = "own", .learning_rate = 0.1, .groups = std::move(groups)}),
        call_(std::move(call)) {}

 protected:
  std::vector<Slot> slots(const ValueType& parameter) const override {
    return {{"mean", parameter}};
  }
  void update(const Update& update) const override {
    call_();
    for (double& x : update.parameter.data<double>()) x -= update.learning_rate;
  }

 private:
  Call call_;
};

class OptimizerSubject final : public Subject {
 public:
  explicit OptimizerSubject(int) {
    Tape tape;
    const Var x = tape.parameter(start().clone(), "x");
    gradients_.emplace(backward(sum(square(x))));
  }

  std::vector<std::string> callers() const override { return {"group", "update"}; }
  Numbers run(const std::string& caller, const MeanwhilePtr& meanwhile) override {
    set_call(caller, meanwhile);
    const Tensor& parameter = gradients_->begin()->value;
    std::memcpy(parameter.raw(), start().raw(), static_cast<std::size_t>(start().bytes()));
    ParameterGroup all{.matches = [this](const ParameterInfo&) {
      call("group");
      return true;
    }};
    optimizer_ = std::make_unique<OwnOptimizer>(std::vector{all}, [this] { call("update"); });
    optimizer_->step(*gradients_);
    optimizer_->step(*gradients_);
    return numbers_of(parameter);
  }
  std::vector<std::pair<std::string, Call>> functions() override {
    return {{"step", [this] { optimizer_->step(*gradients_); }},
            {"set_learning_rate", [this] { optimizer_->set_learning_rate(7); }},
            {"check_state", [this] { optimizer_->check_state(OwnOptimizer({}, [] {}).state()); }},
            {"load_state", [this] { optimizer_->load_state(OwnOptimizer({}, [] {}).state()); }}};
  }

 private:
  std::optional<Gradients> gradients_;
  std::unique_ptr<OwnOptimizer> optimizer_;
};

class LayersSubject final : public Subject {
 public:
  explicit LayersSubject(int threads)
      : layers_(LayerModel{.layer = {.parameters = {{start()}, {start()}, {start()}},
                                     .forward =
                                         [this](const Var& x, std::span<const Var> p, int) {
                                           call("layer");
                                           return LayerOutput(spy_(tanh(x * p[0])));
                                         }}},
                {.mode = LayerCheckpointing::Mode::every, .interval = 2},
                {.threads = threads,
                 .native = NativeCode::off,
                 .progress = on_progress([this](const RunProgress&) { call("progress"); })}) {}

  std::vector<std::string> callers() const override {
    return {"layer", "progress", "forward", "loss"};
  }
  Numbers run(const std::string& caller, const MeanwhilePtr& meanwhile) override {
    set_call(caller, meanwhile);
    layers_.forward(start());
    return numbers_of(layers_
                          .backward([this](const Var& output) {
                            call("loss");
                            return LossAndOutputs{sum(square(output))};
                          })
                          .input);
  }
  std::vector<std::pair<std::string, Call>> functions() override {
    return {{"forward", [this] { layers_.forward(start()); }},
            {"activation", [this] { layers_.activation(1); }},
            {"save", [this] { layers_.save(1); }},
            {"backward", [this] { layers_.backward(start()); }},
            {"forecast", [this] { layers_.forecast(start().type()); }},
            {"release", [this] { layers_.release(); }}};
  }

 private:
  Operation spy_{[this] { call("forward"); }};
  LayerCheckpointer layers_;
};

class ReverseSubject final : public Subject {
 public:
  explicit ReverseSubject(int)
      : driver_({.advance =
                     [this](double& u, std::uint64_t) {
                       call("advance");
                       u += 0.1 * u * u;
                     },
                 .reverse =
                     [this](double& u, double& adjoint, std::uint64_t) {
                       call("reverse");
                       adjoint *= 1 + 0.2 * u;
                     },
                 .seed =
                     [this](double&) {
                       call("seed");
                       return 1.0;
                     },
                 .save =
                     [this](const double& u) {
                       call("save");
                       std::vector<std::byte> bytes(sizeof u);
                       std::memcpy(bytes.data(), &u, sizeof u);
                       return bytes;
                     },
                 .load =
                     [this](std::span<const std::byte> bytes) {
                       call("load");
                       double u = 0;
                       std::memcpy(&u, bytes.data(), sizeof u);
                       return u;
                     }},
                {.steps = 20, .memory_budget = 16_KiB, .progress = [this](const ReverseProgress&) {
                   call("progress");
                 }}) {}

  std::vector<std::string> callers() const override {
    return {"advance", "reverse", "seed", "save", "load", "progress"};
  }
  Numbers run(const std::string& caller, const MeanwhilePtr& meanwhile) override {
    set_call(caller, meanwhile);
    double u = 0.5;
    return {driver_.run(u).value()};
  }
  std::vector<std::pair<std::string, Call>> functions() override {
    return {{"run", [this] { driver_.run(other_); }},
            {"forecast", [this] { static_cast<void>(driver_.forecast(other_)); }}};
  }

 private:
  double other_ = 0.25;
  ReverseDriver<double> driver_;
};

class LoaderSubject final : public Subject {
 public:
  LoaderSubject(int, Bytes prefetch) {
    const Dataset dataset(12, {{"x", {{}, DType::i64}}}, [this](std::span<const std::int64_t> at) {
      call("rows");
      Tensor rows({std::ssize(at)}, DType::i64);
      std::ranges::copy(at, rows.data<std::int64_t>().begin());
      return std::vector<Tensor>{rows};
    });
    const DataLoaderOptions options{
        .batch_size = 4, .shuffle = true, .prefetch = prefetch, .transform = [this](Batch&) {
          call("transform");
        }};
    loader_.emplace(dataset, options);
  }
  ~LoaderSubject() override { loader_.reset(); }

  std::vector<std::string> callers() const override { return {"rows", "transform"}; }
  Numbers run(const std::string& caller, const MeanwhilePtr& meanwhile) override {
    loader_->set_position({});
    set_call(caller, meanwhile);
    Numbers all;
    for (const Batch& batch : *loader_) {
      for (const double each : numbers_of(batch[0])) all.push_back(each);
    }
    return all;
  }
  std::vector<std::pair<std::string, Call>> functions() override {
    return {{"next", [this] { loader_->next(); }},
            {"set_position", [this] { loader_->set_position({}); }}};
  }

 private:
  std::optional<DataLoader> loader_;
};

/// Checks each function of the user with each public function, called on its thread and on another
/// one. `on_another` says whether calls on another thread are errors in each run.
template <class Make>
void check_all(const std::string& name, Make make, bool on_another = true) {
  for (const int threads : {1, 2}) {
    const std::unique_ptr<Subject> subject = make(threads);
    const Numbers expected = subject->run("", nullptr);
    for (const std::string& caller : subject->callers()) {
      for (std::size_t f = 0; f < subject->functions().size(); ++f) {
        for (const bool on_another_thread : {false, true}) {
          if (on_another_thread && !on_another) continue;
          const auto [function, call] = subject->functions()[f];
          INFO(name << ": " << caller << " calls " << function << " on "
                    << (on_another_thread ? "another" : "its") << " thread, with " << threads
                    << " threads");
          const auto meanwhile = std::make_shared<Meanwhile>(call, on_another_thread);
          CHECK(subject->run(caller, meanwhile) == expected);
          CHECK(meanwhile->was_made());
          CHECK(meanwhile->end() == "TapeError");
          CHECK(subject->run("", nullptr) == expected);
        }
      }
    }
  }
}

template <class T, class... Settings>
auto maker(Settings... settings) {
  return [=](int threads) -> std::unique_ptr<Subject> {
    return std::make_unique<T>(threads, settings...);
  };
}

TEST_CASE("functions of the user cannot use the object that calls them") {
  check_all("Runner", maker<RunnerSubject>());
  check_all("Execution", maker<ExecutionSubject>(ParallelMode::automatic));
  check_all("replicas", maker<ExecutionSubject>(ParallelMode::data_parallel));
  check_all("pipeline", maker<ExecutionSubject>(ParallelMode::pipeline));
  check_all("optimizer", maker<OptimizerSubject>());
  check_all("LayerCheckpointer", maker<LayersSubject>());
  check_all("ReverseDriver", maker<ReverseSubject>());
  check_all("DataLoader", maker<LoaderSubject>(Bytes{0}));
  // Another thread's call waits for its turn: it is the one that the batches are made for.
  check_all("DataLoader that prefetches", maker<LoaderSubject>(64_KiB), false);
}

}  // namespace
}  // namespace palimpsest::reentrance_of_objects_test
