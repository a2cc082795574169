#include <algorithm>
#include <atomic>

#include "tests/strategy/mpi/rank_pipeline.h"

namespace palimpsest::rank_pipeline_failure_test {
namespace {

using Catch::Matchers::Contains;

/// A pipeline over ranks that works before and after some of its steps fail.
struct Subject {
  Case layers{"layers", Model(DType::f32, 12, 8)};
  DistributedExecution execution{world(), pipeline_of(4)};
  Found expected;

  Subject() {
    layers.loss = layers.model.loss();
    expected = run();
  }
  Found run() { return run(layers.loss); }
  Found run(const ModelFunction& loss) {
    return Found(execution.gradients(loss, layers.model.parameters, layers.model.batch));
  }
  void check_failure(int rank, const std::string& words, const ModelFunction& loss) {
    const Failure failure = failure_of([&] { run(loss); });
    CAPTURE(world().rank(), failure.own, failure.of_other);
    if (world().rank() == rank) {
      CHECK_THAT(failure.own, Contains(words));
    } else {
      CHECK_THAT(failure.of_other, Contains("rank " + std::to_string(rank) + " failed"));
      CHECK_THAT(failure.of_other, Contains(words));
      CHECK(failure.rank == rank);
    }
    CHECK(same(run(), expected));
  }
};

TEST_CASE("an error of one stage ends the step of all ranks, whenever it comes") {
  Subject subject;
  for (int rank = 0; rank < world().size(); ++rank) {
    CAPTURE(rank);
    subject.check_failure(rank, "cannot read",
                          [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
                            if (world().rank() == rank) throw FileError("cannot read");
                            return subject.layers.model.record(p, b);
                          });
    for (const bool is_backward : {false, true}) {
      for (int call = 0; call < 4; ++call) {
        CAPTURE(is_backward, call);
        std::atomic<int> calls = 0;
        // One call fails on this rank only, and its stage stops.
        const auto copy = [&](const CustomCall& given, bool counts) {
          if (counts && world().rank() == rank && calls++ == call) {
            throw ArgumentError("no luck");
          }
          std::copy_n(given.inputs[0].raw(), given.inputs[0].bytes(), given.outputs[0].raw());
        };
        const CustomOperation back({.name = "identity_adjoint",
                                    .forward = [&](const CustomCall& c) { copy(c, is_backward); }});
        const CustomOperation identity(
            {.name = "identity",
             .forward = [&](const CustomCall& c) { copy(c, !is_backward); },
             .vjp = [&](const Pullback& p) { p.set(0, back({p.adjoint()})); }});
        subject.check_failure(rank, "no luck",
                              [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
                                Var y = b[0];
                                for (std::size_t k = 0; k < p.size(); k += 2) {
                                  y = identity({tanh(matmul(y, p[k]) + p[k + 1])});
                                }
                                const Var error = y - b[1];
                                return mean(error * error);
                              });
      }
    }
  }
}

TEST_CASE("an anomaly in a stage is told by that stage alone") {
  Subject subject;
  ExecutionStrategy strategy = pipeline_of(4);
  strategy.run.anomaly = true;
  DistributedExecution execution(world(), strategy);
  subject.layers.model.batch[1].data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  const int last = world().size() - 1;
  const Failure failure = failure_of([&] {
    execution.gradients(subject.layers.loss, subject.layers.model.parameters,
                        subject.layers.model.batch);
  });
  CHECK(world().first_failed() == last);
  CHECK_THAT(world().rank() == last ? failure.own : failure.of_other,
             Contains("stage " + std::to_string(last)));
}

TEST_CASE("ranks that record other stages are told where they differ") {
  if (world().size() == 1) return;
  Subject subject;
  const int rank = world().size() - 1;
  const auto check = [&](std::initializer_list<std::string> words, auto run) {
    const Failure failure = failure_of(run);
    CAPTURE(failure.own, failure.of_other);
    CHECK(failure.rank == rank);
    for (const std::string& word : words) CHECK_THAT(failure.of_other, Contains(word));
    CHECK(same(subject.run(), subject.expected));
  };
  const std::string name = "rank " + std::to_string(rank) + " has ";
  check({name + "node", "= relu", "rank 0 has node", "= sin"}, [&] {
    subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      const Var y = subject.layers.model.record(p, b);
      return world().rank() == rank ? mean(relu(y)) : mean(sin(y));
    });
  });
  int recorded = 0;  // differs in the third micro-batch
  check({name, "rank 0 has "}, [&] {
    subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      const bool differs = recorded++ == 2 && world().rank() == rank;
      const Var y = subject.layers.model.record(p, b);
      return differs ? mean(y * 2.0) : y;
    });
  });
  DistributedExecution uneven(world(), pipeline_of(world().rank() == rank ? 3 : 4));
  check({name + "accumulation = 3", "rank 0 has accumulation = 4"}, [&] {
    uneven.gradients(subject.layers.loss, subject.layers.model.parameters,
                     subject.layers.model.batch);
  });
  DistributedExecution mixed(
      world(), world().rank() == rank ? ExecutionStrategy{.accumulation = 3} : pipeline_of(3));
  check({name + "a shard of the batch", "rank 0 has a stage of a pipeline"}, [&] {
    mixed.gradients(subject.layers.loss, subject.layers.model.parameters,
                    subject.layers.model.batch);
  });
  check({"rank " + std::to_string(rank) + " is in verify()"}, [&] {
    if (world().rank() == rank) {
      subject.execution.verify(subject.layers.model.parameters);
    } else {
      subject.run();
    }
  });
}

TEST_CASE("what a pipeline over ranks cannot do is refused") {
  const int size = world().size();
  ExecutionStrategy strategy = pipeline_of(4);
  strategy.stages = size + 1;
  CHECK_THROWS_WITH(DistributedExecution(world(), strategy),
                    Contains(std::to_string(size + 1) + " stages for " + std::to_string(size)));
  strategy.stages = size;
  strategy.mode = ExecutionMode::eager;
  CHECK_THROWS_WITH(DistributedExecution(world(), strategy), Contains("mode = lazy"));
  CHECK_THROWS_WITH(DistributedExecution(world(), pipeline_of(4), {.bucket_bytes = 1_MiB}),
                    Contains("no buckets"));
  Subject subject;
  const Failure failure = failure_of([&] {
    subject.execution.gradients_of_shard(subject.layers.loss, subject.layers.model.parameters,
                                         subject.layers.model.batch);
  });
  CHECK_THAT(failure.own, Contains("a pipeline has no shards"));
  // The failed call does not overwrite anyone's parameters.
  DistributedExecution fresh(world(), pipeline_of(4));
  const std::vector<Tensor> own{Tensor::full({3}, world().rank())};
  const Failure first = failure_of(
      [&] { fresh.gradients_of_shard(subject.layers.loss, own, subject.layers.model.batch); });
  CHECK_THAT(first.own, Contains("a pipeline has no shards"));
  CHECK(own[0].at(0) == world().rank());
  subject.check_failure(0, "reads the value of",
                        [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
                          const Var y = subject.layers.model.record(p, b);
                          if (world().rank() == 0) y.value();
                          return y;
                        });
}

TEST_CASE("parameters of a pipeline over ranks that drift apart are named") {
  if (world().size() == 1) return;
  Model model(DType::f32, 12, 8);
  DistributedExecution execution(world(), pipeline_of(4), {.verify_every = 2});
  const auto step = [&] { execution.gradients(model.loss(), model.parameters, model.batch); };
  const int rank = world().size() - 1;
  step();
  if (world().rank() == rank) model.parameters[4].data<float>()[17] += 1e-6F;
  step();
  const Failure failure = failure_of(step);
  CHECK(failure.rank == rank);
  CHECK_THAT(failure.of_other,
             Contains("rank " + std::to_string(rank) + " has parameter 4: f32 (12, 12)"));
  execution.broadcast(model.parameters);
  step();
  step();
  execution.verify(model.parameters);
}

TEST_CASE("a stage that fails leaves the random numbers as those of one process") {
  Case dropping{"dropping", Model(DType::f32, 12, 8)};
  dropping.model.dropped = 0.3;
  dropping.loss = dropping.model.loss();
  const auto gradients = [&](auto& execution, const ModelFunction& loss) {
    return Found(execution.gradients(loss, dropping.model.parameters, dropping.model.batch));
  };
  ExecutionStrategy alone_strategy = pipeline_of(4);
  alone_strategy.stages = world().size();
  Execution alone(alone_strategy);
  DistributedExecution execution(world(), pipeline_of(4));
  for (int step = 0; step < 3; ++step) {
    const ModelFunction fails = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      if (world().rank() == world().size() - 1) throw FileError("cannot read");
      return dropping.model.record(p, b);
    };
    failure_of([&] { gradients(execution, fails); });
    CHECK(same(gradients(execution, dropping.loss), gradients(alone, dropping.loss)));
  }
}

TEST_CASE("gradients of a pipeline over ranks that somebody holds stay as they are") {
  Subject subject;
  const Gradients first = subject.execution.gradients(
      subject.layers.loss, subject.layers.model.parameters, subject.layers.model.batch);
  subject.layers.model.batch[1] = Tensor::uniform({12, Model::width}, 77);
  CHECK(!same(subject.run(), subject.expected));
  CHECK(same(Found(first), subject.expected));
}

}  // namespace
}  // namespace palimpsest::rank_pipeline_failure_test
