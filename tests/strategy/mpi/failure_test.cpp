#include <mpi.h>

#include <algorithm>
#include <atomic>

#include "strategy/mpi/rank_link.h"
#include "tests/strategy/mpi/model.h"
#include "tests/strategy/mpi/ranks.h"

namespace palimpsest::failure_test {
namespace {

using Catch::Matchers::Contains;

bool is_rank(int rank) { return world().rank() == rank; }
int last_rank() { return world().size() - 1; }

/// An execution that works before and after some of its steps fail.
struct Subject {
  Model model{DType::f32, 16, 6};
  DistributedExecution execution;
  Found expected;

  explicit Subject(const ExecutionStrategy& strategy = {})
      : execution(world(), strategy, {.deterministic = true, .bucket_bytes = 640}) {
    expected = run();
  }
  Found run() { return Found(run(model.loss())); }
  Gradients run(const ModelFunction& loss) {
    return execution.gradients(loss, model.parameters, model.batch);
  }
};

/// Checks that `f` fails on `rank` with a message and therefore on all other ranks, and that the
/// next step works.
template <class F>
void check_failure(Subject& subject, int rank, const std::string& words, F f) {
  const Failure failure = failure_of(f);
  CAPTURE(world().rank(), failure.own, failure.of_other);
  if (is_rank(rank)) {
    CHECK_THAT(failure.own, Contains(words));
  } else {
    CHECK_THAT(failure.of_other, Contains(words));
    CHECK_THAT(failure.of_other, Contains("rank " + std::to_string(rank) + " failed"));
    CHECK(failure.rank == rank);
  }
  CHECK(world().first_failed() == rank);
  CHECK(same(subject.run(), subject.expected));
  CHECK(world().first_failed() == std::nullopt);
}

using Hook = std::function<void()>;

/// The identity as an operation. It calls `forward` when it is computed and `backward` when its
/// adjoint is.
CustomOperation identity(const Hook& forward, const Hook& backward) {
  const auto copy_after = [](const Hook& hook) {
    return [hook](const CustomCall& call) {
      hook();
      const std::span<float> from = call.inputs[0].data<float>();
      std::copy(from.begin(), from.end(), call.outputs[0].data<float>().begin());
    };
  };
  const CustomOperation back({.name = "identity_adjoint", .forward = copy_after(backward)});
  return CustomOperation({.name = "identity",
                          .forward = copy_after(forward),
                          .vjp = [=](const Pullback& p) { p.set(0, back({p.adjoint()})); }});
}

Hook failing_if(bool fails, const std::string& where) {
  return [=] {
    if (fails) throw std::runtime_error("no luck " + where);
  };
}

TEST_CASE("an error of one rank ends the step of all, whenever it comes") {
  for (const ExecutionMode mode : {ExecutionMode::lazy, ExecutionMode::eager}) {
    for (const int accumulation : {1, 2}) {
      Subject subject({.mode = mode, .accumulation = accumulation});
      for (int rank = 0; rank < world().size(); ++rank) {
        CAPTURE(name_of(mode), accumulation, rank);
        check_failure(subject, rank, "cannot read", [&] {
          subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
            if (is_rank(rank)) throw FileError("cannot read");
            return subject.model.record(p, b);
          });
        });
        if (world().size() * accumulation > 1) {
          check_failure(subject, rank, "no tensors", [&] {
            const std::span<const Tensor> batch = subject.model.batch;
            subject.execution.gradients(subject.model.loss(), subject.model.parameters,
                                        is_rank(rank) ? batch.first(0) : batch);
          });
        }
        for (const bool forward : {true, false}) {
          check_failure(subject, rank, forward ? "no luck forward" : "no luck backward", [&] {
            subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
              std::vector<Var> parameters(p.begin(), p.end());
              const CustomOperation same =
                  identity(failing_if(is_rank(rank) && forward, "forward"),
                           failing_if(is_rank(rank) && !forward, "backward"));
              parameters[0] = same({p[0]});
              return subject.model.record(parameters, b);
            });
          });
        }
      }
    }
  }
}

TEST_CASE("an error in backward comes after gradients were sent") {
  if (world().size() == 1) return;
  Subject subject({.parallelism = ParallelMode::none});
  subject.run();
  CHECK(subject.execution.reports()[0].started_early > 0);
  const bool fails = is_rank(last_rank());
  std::atomic<int> computed = 0;  // number of adjoints before the one that fails
  check_failure(subject, last_rank(), "no luck backward", [&] {
    subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      std::vector<Var> parameters(p.begin(), p.end());
      parameters[0] = identity([] {}, failing_if(fails, "backward"))({p[0]});  // the last back
      for (Var& later : std::span(parameters).subspan(2)) {
        later = identity([] {}, [&] { ++computed; })({later});
      }
      return subject.model.record(parameters, b);
    });
  });
  CHECK(computed == 10);
}

TEST_CASE("of ranks that fail each throws its own error, the others name the first") {
  Subject subject;
  const Failure failure = failure_of([&] {
    subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      if (!is_rank(0)) throw FileError("on rank " + std::to_string(world().rank()));
      return subject.model.record(p, b);
    });
  });
  if (world().size() == 1) {
    CHECK(failure.own + failure.of_other == "");
    return;
  }
  CHECK(world().first_failed() == 1);
  if (is_rank(0)) {
    CHECK(failure.of_other == "[ranks] rank 1 failed: on rank 1");
  } else {
    CHECK(failure.own == "on rank " + std::to_string(world().rank()));
  }
  CHECK(same(subject.run(), subject.expected));
}

TEST_CASE("a budget that is too small on one rank ends the step before any rank computes") {
  for (int rank = 0; rank < world().size(); ++rank) {
    Model model(DType::f32, 16, 6);
    DistributedExecution execution(
        world(), {.run = {.memory_budget = is_rank(rank) ? Bytes{2000} : Bytes{1'000'000}}});
    std::atomic<int> computed = 0;
    const CustomOperation counted = identity([&] { ++computed; }, [&] { ++computed; });
    const Failure failure = failure_of([&] {
      execution.gradients(
          [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
            const std::vector<Var> input{counted({b[0]}), b[1]};
            return model.record(p, input);
          },
          model.parameters, model.batch);
    });
    CHECK(computed == 0);
    CHECK_THAT(is_rank(rank) ? failure.own : failure.of_other, Contains("budget"));
    CHECK(world().first_failed() == rank);
  }
}

TEST_CASE("an anomaly on one rank ends the step of all") {
  Subject subject({.run = {.anomaly = true}});
  const Tensor good = subject.model.batch[0];
  Tensor bad = good.clone();
  const int rank = last_rank();
  bad.data<float>()[static_cast<std::size_t>(bad.elements() - 1)] =
      std::numeric_limits<float>::quiet_NaN();
  // The last rank has the last examples.
  subject.model.batch[0] = bad;
  const Failure failure = failure_of([&] { subject.run(); });
  CHECK(world().first_failed() == rank);
  CHECK((is_rank(rank) ? failure.own : failure.of_other) != "");
  subject.model.batch[0] = good;
  CHECK(same(subject.run(), subject.expected));
}

/// Checks that `f` throws a RankError on all ranks that names `rank` and contains `words`.
template <class F>
void check_disagreement(int rank, std::initializer_list<std::string> words, F f) {
  const Failure failure = failure_of(f);
  CAPTURE(world().rank(), failure.own, failure.of_other);
  CHECK(failure.rank == rank);
  for (const std::string& word : words) CHECK_THAT(failure.of_other, Contains(word));
}

TEST_CASE("ranks that record different programs are told where they differ") {
  if (world().size() == 1) return;
  Subject subject;
  const int rank = last_rank();
  check_disagreement(
      rank, {"rank " + std::to_string(rank) + " has node", "= relu #", "rank 0 has node", "= tanh"},
      [&] {
        subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
          const Var y = matmul(b[0], p[0]);
          return mean(subject.model.record(p, b) + mean(is_rank(rank) ? relu(y) : tanh(y)));
        });
      });
  check_disagreement(rank, {"nothing more", "= scale"}, [&] {
    subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      const Var loss = subject.model.record(p, b);
      return is_rank(rank) ? loss : sum(loss * 1.0);
    });
  });
  // Another output of the same node.
  check_disagreement(rank, {"= tanh #", ".1, rank 0 has", ".0; "}, [&] {
    subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      const std::vector<Var> halves = chunk(b[0], 2, 1);
      return subject.model.record(p, b) + mean(tanh(halves[is_rank(rank) ? 1 : 0]));
    });
  });
  // The same number of axes, but another shape.
  check_disagreement(rank, {"f32 (12, 5)", "f32 (12, 4)"}, [&] {
    subject.run([&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
      const Var columns = tape.constant(Tensor::ones({Model::width, is_rank(rank) ? 5 : 4}));
      return subject.model.record(p, b) + mean(matmul(b[0], columns));
    });
  });
  CHECK(same(subject.run(), subject.expected));
}

TEST_CASE("ranks that are given different parameters, options or calls are told so") {
  if (world().size() == 1) return;
  Subject subject;
  const int rank = last_rank();
  const std::string name = "rank " + std::to_string(rank);
  std::vector<Tensor> others = subject.model.parameters;
  others.push_back(Tensor::ones({is_rank(rank) ? 7 : 6}));
  DistributedExecution fresh(world());
  for (DistributedExecution* execution : {&fresh, &subject.execution}) {
    check_disagreement(
        rank, {name + " has parameter 12: f32 (7)", "rank 0 has parameter 12: f32 (6)"}, [&] {
          const ModelFunction loss = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
            return subject.model.record(p.first(12), b);
          };
          execution->gradients(loss, others, subject.model.batch);
        });
  }
  CHECK(same(subject.run(), subject.expected));
  // One rank has another layout, because it was given other parameters before.
  const Failure failure = failure_of([&] {
    subject.execution.gradients(subject.model.loss(),
                                is_rank(rank) ? others : subject.model.parameters,
                                subject.model.batch);
  });
  CHECK(failure.own + failure.of_other != "");
  CHECK(same(subject.run(), subject.expected));

  for (const ParallelMode mode : {ParallelMode::automatic, ParallelMode::pipeline}) {
    ExecutionStrategy strategy{.parallelism = mode};
    if (is_rank(rank)) strategy.precision = Precision{PrecisionKind::single};
    DistributedExecution precise(world(), strategy);
    check_disagreement(
        rank, {name + " has precision = single", "rank 0 has precision = as recorded"}, [&] {
          precise.gradients(subject.model.loss(), subject.model.parameters, subject.model.batch);
        });
  }
  DistributedExecution uneven(world(), {}, {.bucket_bytes = is_rank(rank) ? 1_KiB : 2_KiB});
  check_disagreement(
      rank, {name + " has bucket_bytes = 1024", "rank 0 has bucket_bytes = 2048"}, [&] {
        uneven.gradients(subject.model.loss(), subject.model.parameters, subject.model.batch);
      });

  check_disagreement(rank, {name + " is in verify()", "rank 0 in gradients()"}, [&] {
    if (is_rank(rank)) {
      subject.execution.verify(subject.model.parameters);
    } else {
      subject.run();
    }
  });
  CHECK(same(subject.run(), subject.expected));
}

TEST_CASE("a later micro-batch that records something else ends the step") {
  if (world().size() == 1) return;
  Subject subject({.accumulation = 2});
  int recorded = 0;
  check_disagreement(last_rank(), {"has micro-batches that record"}, [&] {
    subject.run([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      const Var loss = subject.model.record(p, b);
      return recorded++ == 1 && is_rank(last_rank()) ? sum(loss * 1.0) : loss;
    });
  });
  CHECK(same(subject.run(), subject.expected));
}

TEST_CASE("a shard without examples is refused on all ranks") {
  if (world().size() == 1) return;
  for (int rank = 0; rank < world().size(); ++rank) {
    Subject subject;
    check_failure(subject, rank, "has no examples", [&] {
      std::vector<Tensor> shard = subject.model.batch;
      if (is_rank(rank)) shard.assign(2, Tensor::zeros({0, Model::width}));
      subject.execution.gradients_of_shard(subject.model.loss(), subject.model.parameters, shard);
    });
  }
}

TEST_CASE("after calls that do not match, ranks draw the random numbers of one process") {
  if (world().size() == 1) return;
  Model model(DType::f32, 16, 3);
  model.dropped = 0.3;
  Execution alone({.parallelism = ParallelMode::data_parallel, .workers = world().size()});
  DistributedExecution execution(world(), {}, {.deterministic = true});
  for (int step = 0; step < 3; ++step) {
    check_disagreement(last_rank(), {"is in verify()"}, [&] {
      if (is_rank(last_rank())) {
        execution.verify(model.parameters);
      } else {
        execution.gradients(model.loss(), model.parameters, model.batch);
      }
    });
    CHECK(same(Found(execution.gradients(model.loss(), model.parameters, model.batch)),
               Found(alone.gradients(model.loss(), model.parameters, model.batch))));
  }
}

TEST_CASE("parameters that drift apart are named") {
  if (world().size() == 1) return;
  const int rank = last_rank();
  Model model(DType::f32, 16, 3);
  DistributedExecution execution(world(), {}, {.verify_every = 2});
  const auto step = [&] { execution.gradients(model.loss(), model.parameters, model.batch); };
  step();
  if (is_rank(rank)) model.parameters[4].data<float>()[17] += 1e-6F;
  step();
  const std::string name = "rank " + std::to_string(rank);
  check_disagreement(rank, {name + " has parameter 4: f32 (12, 12) with hash"}, step);
  check_disagreement(rank, {name + " has parameter 4"},
                     [&] { execution.verify(model.parameters); });
  execution.broadcast(model.parameters);
  step();
  execution.verify(model.parameters);
}

TEST_CASE("what ranks do together fails on all of them") {
  for (int rank = 0; rank < world().size(); ++rank) {
    const Failure failure = failure_of([&] {
      world().together([&] {
        if (is_rank(rank)) throw std::runtime_error("no file here");
      });
    });
    CHECK((is_rank(rank) ? failure.own : failure.of_other) ==
          (is_rank(rank) ? "" : "[ranks] rank " + std::to_string(rank) + " failed: ") +
              "no file here");
  }
  int done = 0;
  world().together([&] { ++done; });
  CHECK(done == 1);
}

TEST_CASE("a rank that leaves is missed by the others") {
  if (world().size() == 1) return;
  const int rank = last_rank();
  RankLink link(MPI_COMM_WORLD);
  if (is_rank(rank)) {
    link.leave();
  } else {
    const Failure failure = failure_of([&] { link.meet(RankCall::step, {}); });
    CHECK(failure.rank == rank);
    CHECK_THAT(failure.of_other, Contains("rank " + std::to_string(rank) + " has left"));
    CHECK(failure_of([&] { link.meet(RankCall::verify, {}); }).rank == rank);
  }
  link.leave();
}

TEST_CASE("what is out of range is refused on each rank by itself") {
  CHECK_THROWS_AS(DistributedExecution(world(), {.gradient = GradientMode::none}), ArgumentError);
  CHECK_THROWS_AS(DistributedExecution(world(), {.parallelism = ParallelMode::data_parallel}),
                  ArgumentError);
  CHECK_THROWS_AS(DistributedExecution(
                      world(), {.parallelism = ParallelMode::model_parallel, .devices = {{}, {}}}),
                  ArgumentError);
  CHECK_THROWS_AS(DistributedExecution(world(), {}, {.bucket_bytes = 63}), ArgumentError);
  CHECK_THROWS_AS(DistributedExecution(world(), {}, {.bucket_bytes = 2_GiB}), ArgumentError);
  CHECK_THROWS_AS(DistributedExecution(world(), {}, {.verify_every = -1}), ArgumentError);
  const int size = world().size();
  CHECK(world().ranks_here() == size);
  CHECK((0 <= world().rank() && world().rank() < size));
}

}  // namespace
}  // namespace palimpsest::failure_test
