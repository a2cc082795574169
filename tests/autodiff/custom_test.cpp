#include "autodiff/custom.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>

#include "autodiff/gradcheck.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "autodiff/trace.h"
#include "checkpoint/planners.h"
#include "strategy/backward.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::custom_test {
namespace {

using Catch::Matchers::Contains;

/// y = sin(x), z = x·w: two inputs, two outputs, and 8 bytes of workspace.
CustomDefinition sine_and_product() {
  CustomDefinition definition;
  definition.name = "sine_and_product";
  definition.types = [](std::span<const ValueType> types) {
    return std::vector<ValueType>{types[0], types[0]};
  };
  definition.forward = [](const CustomCall& call) {
    if (call.workspace.size() < 8) throw InternalError("the workspace is missing");
    visit_floating(call.inputs[0].dtype(), [&]<class T>(T) {
      const auto x = call.inputs[0].data<T>();
      const auto w = call.inputs[1].data<T>();
      for (std::size_t i = 0; i < x.size(); ++i) {
        call.outputs[0].data<T>()[i] = std::sin(x[i]);
        call.outputs[1].data<T>()[i] = x[i] * w[i];
      }
    });
  };
  definition.cost = [](const NodeView& node) {
    return Cost{11.0 * static_cast<double>(node.output().shape.elements()), 0};
  };
  definition.workspace = [](const NodeView&, int) { return Bytes{8}; };
  return definition;
}

/// Computes cos(x) = sin(x + π/2) by the operation itself, so that it has derivatives of any order.
CustomOperation differentiable_sine_and_product() {
  CustomDefinition definition = sine_and_product();
  definition.vjp = [](const Pullback& p) {
    const Var x = p.input(0);
    const Var w = p.input(1);
    const CustomOperation again = differentiable_sine_and_product();
    const Var cosine = again({x + 1.5707963267948966, w});
    if (p.wants(0)) p.set(0, p.adjoint(0) * cosine + p.adjoint(1) * w);
    if (p.wants(1)) p.set(1, p.adjoint(1) * x);
  };
  return CustomOperation(definition);
}

Tensor some(Shape shape, std::uint64_t seed, DType dtype = DType::f64) {
  return Tensor::normal(shape, seed, 0, 1, dtype);
}

TEST_CASE("a user's operation has derivatives of two orders") {
  const CustomOperation operation = differentiable_sine_and_product();
  const Tensor inputs[] = {some({2, 3}, 1), some({2, 3}, 2)};
  const auto result = gradcheck(
      [&](std::span<const Var> xs) {
        const Var y = operation(xs);
        return y * y + y.output(1) * tanh(y);
      },
      inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("a user's operation tells planners its cost and workspace") {
  Tape tape;
  const CustomOperation operation(sine_and_product());
  const Var x = tape.constant(some({5}, 1, DType::bf16));
  const Var y = operation({x, x});
  const NodeView node(tape.nodes(), y.node());
  CHECK(node.operation().name == "sine_and_product");
  CHECK(cost_of(node).flops == 55);
  // The scratch memory and four operands widened to f32, each rounded up to 64 bytes.
  CHECK(workspace_of(node, 1) == 5 * 64);
  CHECK(tape.describe(y.node()) == "sine_and_product #1");
  CHECK_THAT(y.value().at(2), Catch::Matchers::WithinAbs(std::sin(x.value().at(2)), 4e-3));
}

TEST_CASE("a cost or workspace that throws concerns only what needs its node") {
  using Change = void (*)(CustomDefinition&);
  const std::pair<Change, const char*> rows[] = {
      {[](CustomDefinition& user) {
         user.workspace = [](const NodeView&, int) -> Bytes { throw std::out_of_range("too far"); };
       },
       "its workspace threw: too far"},
      {[](CustomDefinition& user) {
         user.workspace = [](const NodeView&, int) { return Bytes{-8}; };
       },
       "its workspace returned -8 bytes"},
      {[](CustomDefinition& user) { user.cost = [](const NodeView&) -> Cost { throw 7; }; },
       "its cost threw an unknown exception"},
  };
  for (const auto& [change, words] : rows) {
    CustomDefinition user = sine_and_product();
    change(user);
    for (const bool fuse : {true, false}) {
      for (const Bytes budget : {unlimited, Bytes{1} << 20}) {
        const RunOptions options{.memory_budget = budget, .fuse = fuse};
        INFO(words << (fuse ? ", fused" : ""));
        Tape tape(lazy(options));
        const Var x = tape.parameter(some({3}, 1));
        const Var bad = CustomOperation(user)({x, stop_gradient(x)});
        const Var square = sum(x * x);
        for (int i = 0; i < 2; ++i) {
          CHECK(backward(square, options)[x].at(1) == 2 * x.value().at(1));
          const auto names = {std::string("[sine_and_product]"), std::string(words),
                              std::string("custom_test.cpp")};
          CHECK_THROWS_AS(bad.value(), ArgumentError);
          check_error([&] { bad.value(); }, names);
          check_error([&] { evaluate(sum(bad), options); }, names);
        }
      }
    }
    for (const bool online : {false, true}) {
      Tape tape(online ? eager({.memory_budget = 1 << 20}) : eager());
      const Var x = tape.parameter(some({3}, 1));
      if (!online && std::string(words).find("cost") != std::string::npos) continue;
      CHECK_THROWS_AS(CustomOperation(user)({x, x}), ArgumentError);
      CHECK(backward(sum(x * x))[x].at(1) == 2 * x.value().at(1));
    }
  }
}

TEST_CASE("a user's operation without type function has one output like its first input") {
  Tape tape;
  const CustomOperation twice({
      .name = "twice",
      .forward =
          [](const CustomCall& call) {
            for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
              call.outputs[0].data<float>()[static_cast<std::size_t>(i)] =
                  2 * call.inputs[0].data<float>()[static_cast<std::size_t>(i)];
            }
          },
      .vjp = [](const Pullback& p) { p.set(0, p.adjoint() * 2.0); },
  });
  const Var x = tape.parameter(Tensor::vector({1, 2, 3}));
  const Var y = twice({x});
  CHECK(same_bits(y.value(), Tensor::vector({2, 4, 6})));
  CHECK(same_bits(gradient(y, x).value(), Tensor::vector({2, 2, 2})));
}

TEST_CASE("a missing derivative is an error that names operation and argument") {
  Tape tape;
  const Var x = tape.parameter(some({3}, 1));
  const Var w = tape.parameter(some({3}, 2));
  const CustomOperation none_at_all(sine_and_product());
  const Var y = none_at_all({x, w});
  CHECK_THROWS_AS(gradient(y, w), ArgumentError);
  CHECK_THROWS_WITH(gradient(y, w), Contains("[sine_and_product]") && Contains("argument 1") &&
                                        Contains("has no vjp") && Contains("custom_test.cpp"));
  CHECK_NOTHROW(gradient(none_at_all({stop_gradient(x), stop_gradient(w)}) + x, x));

  CustomDefinition forgetful = sine_and_product();
  forgetful.vjp = [](const Pullback& p) { p.set(0, p.adjoint(0)); };
  const Var z = CustomOperation(forgetful)({x, w});
  CHECK_NOTHROW(gradient(z, x));
  CHECK_THROWS_WITH(gradient(z, w), Contains("argument 1") && Contains("did not set it"));
}

TEST_CASE("a derivative that counts wrong is an error that names operation and number") {
  Tape tape;
  const Var x = tape.parameter(some({3}, 1));
  const Var w = tape.parameter(some({3}, 2));
  using Vjp = void (*)(const Pullback&);
  const std::pair<Vjp, const char*> rows[] = {
      {[](const Pullback& p) { p.set(2, p.adjoint()); }, "number 2 of 2 inputs"},
      {[](const Pullback& p) { p.set_none(5); }, "number 5 of 2 inputs"},
      {[](const Pullback& p) { p.set(0, p.input(3)); }, "number 3 of 2 inputs"},
      {[](const Pullback& p) { p.set(0, p.adjoint(7)); }, "number 7 of 2 outputs"},
      {[](const Pullback& p) { p.set(0, p.output(2)); }, "number 2 of 2 outputs"},
      {[](const Pullback& p) { p.set(0, p.wants(9) ? p.adjoint() : p.input()); },
       "number 9 of 2 inputs"},
  };
  for (const auto& [vjp, words] : rows) {
    CustomDefinition wrong = sine_and_product();
    wrong.vjp = vjp;
    const Var y = CustomOperation(wrong)({x, w});
    CHECK_THROWS_WITH(gradient(y, x), Contains("[sine_and_product]") && Contains(words));
  }
}

TEST_CASE("definitions and calls that make no sense are errors") {
  CHECK_THROWS_WITH(CustomOperation({.name = "", .forward = [](const CustomCall&) {}}),
                    Contains("needs a name"));
  CHECK_THROWS_WITH(CustomOperation({.name = "empty"}), Contains("[empty]") && Contains("forward"));
  Tape tape;
  Tape other;
  const Var x = tape.constant(Tensor::scalar(1));
  const CustomOperation mute({
      .name = "mute",
      .types = [](std::span<const ValueType>) { return std::vector<ValueType>{}; },
      .forward = [](const CustomCall&) {},
  });
  CHECK_THROWS_WITH(mute({x}), Contains("[mute]") && Contains("no output"));
  CHECK_THROWS_AS(mute({x, other.constant(Tensor::scalar(1))}), TapeError);
  CHECK_THROWS_AS(mute(std::span<const Var>()), ArgumentError);
}

TEST_CASE("an operation without inputs is recorded on the tape named") {
  Tape tape;
  const CustomOperation seven({
      .name = "seven",
      .types =
          [](std::span<const ValueType>) { return std::vector<ValueType>{{Shape{2}, DType::i32}}; },
      .forward =
          [](const CustomCall& call) {
            for (std::int32_t& element : call.outputs[0].data<std::int32_t>()) element = 7;
          },
  });
  CHECK(same_bits(seven(tape, {}).value(), Tensor::from<std::int32_t>({7, 7}, {2})));
}

/// A loss that applies the operation many times.
Var chain(Tape& tape, const CustomOperation& operation) {
  const Var w = tape.parameter(some({64}, 3, DType::f32), "w");
  Var x = tape.parameter(some({64}, 4, DType::f32), "x");
  for (int layer = 0; layer < 12; ++layer) {
    const Var y = operation({x, w});
    x = tanh(y.output(1)) + y;
  }
  return sum(x);
}

TEST_CASE("a user's operation runs in every mode, under every planner and budget") {
  const CustomOperation operation = differentiable_sine_and_product();
  Tape reference(lazy());
  const Gradients expected = backward(chain(reference, operation));
  const Bytes peak = expected.report().predicted_peak;
  const auto check = [&](std::shared_ptr<Evaluator> evaluator, const RunOptions& options) {
    Tape tape(std::move(evaluator));
    const Gradients found = backward(chain(tape, operation), options);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(same_bits(found.entries()[i].gradient, expected.entries()[i].gradient));
    }
    CHECK(found.report().measured_peak <= found.report().predicted_peak);
  };
  check(eager(), {});
  for (const PlannerPtr& planner : {keep_all(), square_root(), uniform({.segments = 4})}) {
    check(lazy(), {.planner = planner});
  }
  for (const int threads : {1, 2, 4}) {
    check(lazy(), {.memory_budget = peak / 2, .threads = threads});
  }
}

TEST_CASE("tapes on eight threads share one operation") {
  const CustomOperation operation = differentiable_sine_and_product();
  std::vector<Tensor> found(8);
  {
    std::vector<std::thread> threads;
    for (Tensor& result : found) {
      threads.emplace_back([&] {
        Tape tape;
        const Var y = chain(tape, operation);
        result = gradient(y, tape.var(0)).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const Tensor& result : found) CHECK(same_bits(result, found[0]));
}

TEST_CASE("pull_back_through differentiates a composition, inside no_gradient too") {
  CustomDefinition definition;
  definition.name = "cube";
  definition.forward = [](const CustomCall& call) {
    const auto x = call.inputs[0].data<double>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      call.outputs[0].data<double>()[i] = x[i] * x[i] * x[i];
    }
  };
  definition.vjp = [](const Pullback& p) {
    pull_back_through(
        p, [](std::span<const Var> xs) { return std::vector<Var>{xs[0] * xs[0] * xs[0]}; });
  };
  const CustomOperation cube(definition);
  const Tensor inputs[] = {some({4}, 5)};
  CHECK(gradcheck([&](std::span<const Var> xs) { return cube(xs); }, inputs));

  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(2, DType::f64));
  const Var y = cube({x});
  const Var slope = [&] {
    const auto scope = tape.no_gradient();
    return gradient(y, x);
  }();
  CHECK(slope.item() == 12);
  CHECK(gradient(slope, x).item() == 0);            // it was recorded without gradient
  CHECK(gradient(gradient(y, x), x).item() == 12);  // this one with

  definition.vjp = [](const Pullback& p) {
    pull_back_through(p, [](std::span<const Var> xs) { return std::vector<Var>{xs[0], xs[0]}; });
  };
  CHECK_THROWS_WITH(gradient(CustomOperation(definition)({x}), x), Contains("2 values"));
}

TEST_CASE("a trace is taken off the tape and can be replayed") {
  Tape tape;
  const Var x = tape.parameter(some({3}, 1));
  const Var y = tape.parameter(some({3}, 2));
  const Var outside = tape.parameter(some({3}, 3));
  const std::uint32_t nodes = tape.node_count();
  const auto f = [&](std::span<const Var> xs) {
    const auto scope = tape.scope("inner");
    static_cast<void>(exp(xs[0]));  // unused
    const Var constant = tape.constant(Tensor::full({3}, 2, DType::f64));
    const Var product = (xs[0] * outside).named("product");
    return std::vector<Var>{product + constant * outside, xs[1], outside, product};
  };
  const Trace trace(f, std::vector<Var>{x, y});
  CHECK(tape.node_count() == nodes);
  REQUIRE(trace.captured().size() == 1);
  CHECK(trace.captured()[0] == outside);
  // Three arguments, the constant, two products and a sum. The unused exponential is dropped.
  CHECK(trace.program().node_count() == 7);

  const std::vector<Var> replayed = trace.replay(std::vector<Var>{y, x, outside});
  const std::vector<Var> direct = f(std::vector<Var>{y, x});
  REQUIRE(replayed.size() == direct.size());
  for (std::size_t i = 0; i < direct.size(); ++i) {
    CHECK(same_bits(replayed[i].value(), direct[i].value()));
  }
  CHECK(replayed[1] == x);
  CHECK(tape.describe(replayed[3].node()).find("inner/product multiply") == 0);
  CHECK(tape.where(replayed[3].node()).line() == tape.where(direct[3].node()).line());

  CHECK_THROWS_WITH(trace.replay(std::vector<Var>{x}),
                    Contains("1 arguments for a trace that takes 3"));
  const Var longer = tape.constant(some({4}, 1));
  CHECK_THROWS_AS(trace.replay(std::vector<Var>{x, longer, outside}), ShapeError);
}

TEST_CASE("a trace that fails leaves the tape as it was") {
  Tape tape(eager());
  const Var x = tape.parameter(some({3}, 1));
  const auto expect = [&](const Composition& f, const std::string& words) {
    CHECK_THROWS_WITH(Trace(f, std::vector<Var>{x}), Contains(words));
    CHECK(tape.node_count() == 1);
  };
  using Vars = std::vector<Var>;
  expect([](auto) { return Vars{}; }, "returned no value");
  expect([&](auto xs) { return Vars{xs[0] * tape.parameter(some({3}, 1), "inner")}; }, "inner");
  expect(
      [](auto xs) -> Vars {
        tanh(xs[0]);
        throw ArgumentError("[user] stop");
      },
      "[user] stop");
  const auto block = [&](std::span<const Var> xs) {
    const auto scope = tape.no_gradient();
    return Vars{xs[0] * xs[0]};
  };
  const Var replayed = Trace(block, Vars{x}).replay(Vars{x})[0];
  CHECK(gradient(replayed, x).value().at(0) == 0);
  CHECK(gradient(x * x, x).value().at(0) == 2 * x.value().at(0));
}

}  // namespace
}  // namespace palimpsest::custom_test
