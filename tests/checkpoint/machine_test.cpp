#include <cmath>

#include "checkpoint/machine.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/node_seconds.h"
#include "checkpoint/planning_files.h"
#include "checkpoint/tape_graph.h"
#include "tests/catch.h"
#include "tests/checkpoint/tapes.h"
#include "tests/temporary_file.h"

namespace machine_test {

using namespace palimpsest;
using namespace palimpsest::tests;
using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

namespace {

constexpr Machine three_caches{.flops_per_second = 1e11,
                               .bytes_per_second = 1e10,
                               .seconds_per_node = 2e-6,
                               .caches = {{{1000, 8e11}, {100'000, 2e11}, {10'000'000, 1e11}}}};
constexpr Machine with_rates{.flops_per_second = 1e11,
                             .bytes_per_second = 1e30,
                             .seconds_per_node = 0,
                             .products = {.f64 = 5e10, .bf16 = 2e11},
                             .convolutions = {.f32 = 4e10, .f64 = 2e10},
                             .reductions = {.f32 = 2e10},
                             .functions = {.f32 = 3e10, .f64 = 1e10}};

}  // namespace

TEST_CASE("operands move at the rate of the smallest cache that holds them") {
  CHECK(bytes_per_second(0, three_caches) == 8e11);
  CHECK(bytes_per_second(1000, three_caches) == 8e11);
  CHECK(bytes_per_second(1001, three_caches) == 2e11);
  CHECK(bytes_per_second(100'000, three_caches) == 2e11);
  CHECK(bytes_per_second(1e7, three_caches) == 1e11);
  CHECK(bytes_per_second(1e7 + 1, three_caches) == 1e10);
  CHECK(bytes_per_second(1, Machine{}) == Machine{}.bytes_per_second);
  CHECK(bytes_per_second(0, Machine{}) == Machine{}.bytes_per_second);
  CHECK(seconds_of({0, 0}) == Machine{}.seconds_per_node);
  CHECK_THAT(seconds_of({2e11, 100'000}, three_caches), WithinRel(2 + 5e-7 + 2e-6, 1e-12));
  CHECK_THAT(seconds_of({0, 1e11}, three_caches), WithinRel(10 + 2e-6, 1e-12));
}

TEST_CASE("kinds of work have rates of their own where the machine knows them") {
  const Machine& m = with_rates;
  CHECK(flops_per_second(m.products, DType::f32, m) == 1e11);
  CHECK(flops_per_second(m.products, DType::f64, m) == 5e10);
  CHECK(flops_per_second(m.products, DType::bf16, m) == 2e11);
  CHECK(flops_per_second(m.products, DType::f16, m) == 1e11);
  CHECK(flops_per_second(m.convolutions, DType::bf16, m) == 4e10);
  CHECK(flops_per_second(m.reductions, DType::f64, m) == 1e11);
  CHECK(flops_per_second(m.functions, DType::boolean, m) == 3e10);

  Tape tape;
  const auto seconds = [&](const Var& value, const Machine& machine) {
    return seconds_of(NodeView(tape.nodes(), value.node()), machine);
  };
  const auto flops = [&](const Var& value) {
    return cost_of(NodeView(tape.nodes(), value.node())).flops;
  };
  const auto leaf = [&](Shape shape, DType dtype) {
    return tape.constant(Tensor::ones(shape, dtype));
  };
  struct Row {
    DType dtype;
    double product, convolution, function, reduction;
    double widened;  ///< seconds per element for widening
  };
  for (const auto& [dtype, product, convolution, function, reduction, widened] :
       {Row{DType::f32, 1e11, 4e10, 3e10, 2e10, 0}, Row{DType::f64, 5e10, 2e10, 1e10, 1e11, 0},
        Row{DType::bf16, 2e11, 4e10, 3e10, 2e10, 2 / 3e10},
        Row{DType::f16, 1e11, 4e10, 3e10, 2e10, 2 / 3e10}}) {
    CAPTURE(name_of(dtype));
    const Var matrix = leaf({32, 32}, dtype);
    const auto check = [&](const Var& value, double rate, double elements) {
      CHECK_THAT(seconds(value, m), WithinRel(flops(value) / rate + elements * widened, 1e-9));
      // Without separate rates, one rate applies to all work.
      CHECK_THAT(seconds(value, {.bytes_per_second = 1e30}),
                 WithinRel(flops(value) / 50e9 + 1e-6, 1e-9));
    };
    check(matmul(matrix, matrix), product, 0);  // widening is part of the measured kernel
    check(conv2d(leaf({1, 4, 8, 8}, dtype), leaf({4, 4, 3, 3}, dtype)), convolution,
          256 + 144 + 144);
    check(exp(matrix), function, 2 * 1024);
    check(softmax(matrix, 1), reduction, 2 * 1024);
    check(permute(matrix, {1, 0}), function, 0);
    check(normal(tape, {32, 32}, 0, 1, dtype), function, 1024);
    check(layer_norm(matrix), reduction, 0);
    check(cross_entropy(matrix, leaf({32}, DType::i64), {.reduction = Reduction::none}), reduction,
          0);
    CHECK_THAT(seconds(matrix > matrix, m), WithinRel(1024 / function + 2 * 1024 * widened, 1e-9));
  }
  // A cast uses the rate of its result type; booleans have none.
  CHECK_THAT(seconds(cast(leaf({8}, DType::f32), DType::f64), m), WithinRel(8 / 1e10, 1e-9));
  // A program recorded as one node counts as general work.
  const Var x = tape.constant(Tensor::ones({32, 32}));
  const Var traced = checkpoint([](const Var& in) { return exp(in); }, x);
  CHECK_THAT(seconds(traced, m), WithinRel(flops(traced) / 1e11, 1e-9));
}

TEST_CASE("a graph takes its costs from the machine it is made for") {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({8}));
  const Var a = record(tape, scratched, {x});  // 1e9 flops, 1e6 bytes
  const ValueId target = a.id();
  const Graph graph = graph_of(tape, {&target, 1}, 1, {}, three_caches);
  CHECK_THAT(graph.cost(a.node()), WithinRel(1e-2 + 1e-5 + 2e-6, 1e-12));
  Graph other = graph;
  other.set_cost(a.node(), 3);
  CHECK(other.one_pass_cost() == 3);
  CHECK_FALSE(other == graph);
  CHECK_THROWS_AS(other.set_cost(a.node(), -1), ArgumentError);
  CHECK_THROWS_AS(other.set_cost(a.node(), INFINITY), ArgumentError);
}

TEST_CASE("a machine of no rate is refused, and the number named") {
  CHECK_NOTHROW(check(Machine{}));
  CHECK_NOTHROW(check(three_caches));
  Machine machine;
  machine.flops_per_second = 0;
  CHECK_THROWS_WITH(check(machine), Contains("flops_per_second"));
  machine = {};
  machine.seconds_per_node = INFINITY;
  CHECK_THROWS_WITH(check(machine), Contains("seconds_per_node"));
  machine = {};
  machine.convolutions.f64 = -1;
  CHECK_THROWS_WITH(check(machine), Contains("one kind of work"));
  machine = three_caches;
  machine.caches[1].bytes_per_second = 0;
  CHECK_THROWS_WITH(check(machine), Contains("of a cache"));
}

TEST_CASE("machines survive being written and read, and what is wrong in a file is named") {
  const TemporaryFile file;
  for (const Machine& machine : {Machine{}, three_caches, with_rates}) {
    write_machine(machine, file.path());
    CHECK(read_machine(file.path()) == machine);
  }
  const struct {
    std::string members;
    std::string words;
  } rows[] = {
      {R"("bytes_per_second":1,"seconds_per_node":1)", "flops_per_second"},
      {R"("flops_per_second":1,"bytes_per_second":0,"seconds_per_node":1)",
       "bytes_per_second is 0"},
      {R"("flops_per_second":"1","bytes_per_second":1,"seconds_per_node":1)", "not a number"},
      {R"("flops_per_second":1,"bytes_per_second":1,"seconds_per_node":1,"speed":3)", "speed"},
      {R"("flops_per_second":1,"bytes_per_second":1,"seconds_per_node":1,"caches":[{"bytes":1}])",
       "caches[0]"},
      {R"("flops_per_second":1,"bytes_per_second":1,"seconds_per_node":1,"caches":[{"bytes":1,"bytes_per_second":0}])",
       "of a cache"},
      {R"("flops_per_second":1,"bytes_per_second":1,"seconds_per_node":1,"caches":[{},{},{},{}])",
       "4 caches"},
      {R"("flops_per_second":1,"bytes_per_second":1,"seconds_per_node":1,"caches":[{"bytes":9,"bytes_per_second":1},{"bytes":8,"bytes_per_second":1}])",
       "smallest first"},
      {R"("flops_per_second":1,"bytes_per_second":1,"seconds_per_node":1,"products":{"f8":1})",
       "products"},
      {R"("flops_per_second":1,"bytes_per_second":1,"seconds_per_node":1,"functions":{"f32":-1})",
       "functions.f32"},
  };
  for (const auto& row : rows) {
    file.write(R"({"format":"palimpsest-machine","version":1,)" + row.members + "}");
    CAPTURE(row.members);
    CHECK_THROWS_AS(read_machine(file.path()), FileError);
    CHECK_THROWS_WITH(read_machine(file.path()), Contains(file.path()) && Contains(row.words));
  }
  // The format from before there were separate rates for kinds of work.
  file.write(
      R"({"format":"palimpsest-machine","version":1,"flops_per_second":3,"bytes_per_second":2,"seconds_per_node":1})");
  const Machine old{.flops_per_second = 3, .bytes_per_second = 2, .seconds_per_node = 1};
  CHECK(read_machine(file.path()) == old);
  Machine broken;
  broken.caches[0] = {0, NAN};
  CHECK_THROWS_AS(write_machine(broken, file.path()), ArgumentError);
  broken = {};
  broken.flops_per_second = -1;
  CHECK_THROWS_AS(write_machine(broken, file.path()), ArgumentError);
}

}  // namespace machine_test
