#include "strategy/evaluators/measured_machine.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <vector>

#include "autodiff/execute.h"
#include "autodiff/gradient.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/functions/binary_functions.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/unary.h"
#include "checkpoint/planning_files.h"
#include "strategy/base/free_memory.h"
#include "strategy/base/stopwatch.h"
#include "strategy/evaluators/engine.h"

namespace palimpsest {
namespace {

/// Per measurement. There are some thirty.
constexpr double most_seconds = 0.015;
/// Long enough that reading the clock costs nothing.
constexpr double round_seconds = 1e-3;

/// The minimum seconds of a call of `f`, which is called at least once. Other activity of the
/// machine only adds time.
template <class F>
double fastest(F f) {
  const Stopwatch all;
  double best = std::numeric_limits<double>::infinity();
  std::int64_t times = 1;
  do {
    const Stopwatch round;
    for (std::int64_t i = 0; i < times; ++i) f();
    const double seconds = round.seconds();
    best = std::min(best, seconds / static_cast<double>(times));
    if (seconds < round_seconds) times *= 2;
  } while (all.seconds() < most_seconds);
  return best;
}

double measure_flops() {
  constexpr std::int64_t n = 384;
  const Tensor a = Tensor::uniform({n, n}, 1);
  const Tensor b = Tensor::uniform({n, n}, 2);
  const Tensor c({n, n});
  const Tensor workspace({gemm_workspace<float>(n, n, n)}, DType::boolean);
  const Gemm<float> product{.m = n,
                            .n = n,
                            .k = n,
                            .a = a.data<float>().data(),
                            .lda = n,
                            .b = b.data<float>().data(),
                            .ldb = n,
                            .c = c.data<float>().data(),
                            .ldc = n};
  const auto bytes = static_cast<std::size_t>(workspace.elements());
  const double seconds = fastest([&] { gemm_serial(product, {workspace.raw(), bytes}); });
  return 2.0 * n * n * n / seconds;
}

/// The rate of sums of two arrays into a third, all three together in `bytes` bytes.
double measure_bytes(Bytes bytes) {
  constexpr std::size_t add = functions::position<functions::Add, functions::Binary>;
  const std::int64_t n = bytes / 3 / size_of(DType::f32);
  const Tensor a = Tensor::ones({n});
  const Tensor b = Tensor::ones({n});
  const Tensor c = Tensor::ones({n});
  const auto data = [](const Tensor& tensor) { return tensor.data<float>().data(); };
  const double seconds =
      fastest([&] { kernels().binary_f32[add](data(a), 1, data(b), 1, data(c), n); });
  return 3.0 * static_cast<double>(n * size_of(DType::f32)) / seconds;
}

/// Seconds per node of repeated steps, after the first run has allocated the kept memory.
double measure_node() {
  constexpr int nodes = 500;
  double best = std::numeric_limits<double>::infinity();
  Tape tape;
  Engine engine;
  fastest([&] {
    tape.clear();
    Var x = tape.parameter(Tensor::ones({1}));
    for (int i = 0; i < nodes; ++i) x = x * x;
    const ValueId target = x.id();
    const Report run = engine.evaluate(tape, {&target, 1}, {.threads = 1, .fuse = false});
    best = std::min(best, run.run_seconds);
  });
  return best / nodes;
}

/// Seconds of running a value's node repeatedly on one thread, in memory that has been touched.
double seconds_of_node(const Var& value) {
  Tape& tape = value.tape();
  for (const ValueId input : tape.inputs(value.node())) tape.value(input);
  std::vector<Buffer> buffers;
  std::size_t taken = 0;
  const auto allocate = [&](Bytes bytes) {
    if (taken == buffers.size()) buffers.push_back(allocate_buffer(bytes));
    return buffers[taken++];
  };
  return tbb::task_arena(1).execute([&] {
    return fastest([&] {
      taken = 0;
      execute_on_tape(tape, value.node(), allocate);
    });
  });
}

/// Subtracts the cost model's time for moving operands, unless that is more than half.
double flops_rate(std::span<const Var> values, const Machine& machine) {
  double flops = 0;
  double seconds = 0;
  for (const Var& value : values) {
    const Cost cost = cost_of(NodeView(value.tape().nodes(), value.node()));
    const double measured = seconds_of_node(value);
    flops += cost.flops;
    seconds +=
        std::max(measured / 2, measured - cost.bytes / bytes_per_second(cost.bytes, machine));
  }
  return flops / seconds;
}

double measure_product(DType dtype, const Machine& machine) {
  constexpr std::int64_t n = 384;
  Tape tape;
  const Var a = cast(tape.constant(Tensor::uniform({n, n}, 1)), dtype);
  const Var b = cast(tape.constant(Tensor::uniform({n, n}, 2)), dtype);
  const Var product = matmul(a, b);
  return flops_rate({&product, 1}, machine);
}

/// Convolutions and their adjoints by both operands, with images that shrink as in networks: short
/// rows take longer.
double measure_convolution(DType dtype, const Machine& machine) {
  Tape tape;
  std::vector<Var> values;
  for (const std::int64_t scale : {1, 2, 4}) {
    const Shape shape{4, 16 * scale, 28 / scale, 28 / scale};
    const Var image = cast(tape.constant(Tensor::uniform(shape, 1)), dtype);
    const Var weight = cast(tape.constant(Tensor::uniform({shape[1], shape[1], 3, 3}, 2)), dtype);
    const Var operands[] = {image, weight};
    const Var made = conv2d(image, weight, {}, {.padding = 1});
    const Var adjoint = tape.constant(Tensor::ones(made.shape(), dtype));
    values.push_back(made);
    for (const Var& each : vjp({&made, 1}, operands, {&adjoint, 1})) values.push_back(each);
  }
  return flops_rate(values, machine);
}

double measure_function(DType dtype, const Machine& machine) {
  Tape tape;
  const Var made = exp(cast(tape.constant(Tensor::uniform({1 << 15}, 1)), dtype));
  return flops_rate({&made, 1}, machine);
}

double measure_reduction(DType dtype, const Machine& machine) {
  Tape tape;
  const Var made = softmax(cast(tape.constant(Tensor::uniform({128, 128}, 1)), dtype), 1);
  return flops_rate({&made, 1}, machine);
}

/// The cache size that the system reports, or else a usual size. Not smaller than the previous
/// cache.
Bytes cache_bytes(int name, Bytes usual, Bytes before) {
  const long bytes = sysconf(name);
  return std::max<Bytes>(bytes > 0 ? bytes : usual, before);
}

void measure_memory(Machine& machine) {
  auto& [first, second, third] = machine.caches;
  first.bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32_KiB, 0);
  second.bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1_MiB, first.bytes);
  third.bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 8_MiB, second.bytes);
  // Twice the size of the caches, if that much memory is available. The reported size may be the
  // sum over cores that share caches, and thus larger.
  const Bytes wanted = std::clamp(2 * third.bytes, 128_MiB, 256_MiB);
  const Bytes beyond = std::max(std::min(wanted, free_memory() / 4), 1_MiB);
  for (Cache& cache : machine.caches) {
    cache.bytes = std::min(cache.bytes, beyond / 2);
    // Half of it, since other data is always in the cache too.
    cache.bytes_per_second = measure_bytes(cache.bytes / 2);
  }
  machine.bytes_per_second = measure_bytes(beyond);
}

Machine measure() {
  Machine machine;
  measure_memory(machine);
  machine.flops_per_second = measure_flops();
  machine.seconds_per_node = measure_node();
  machine.products.f64 = measure_product(DType::f64, machine);
  machine.products.bf16 = measure_product(DType::bf16, machine);
  machine.products.f16 = measure_product(DType::f16, machine);
  for (const auto& [dtype, rate] :
       {std::pair(DType::f32, &FlopRates::f32), {DType::f64, &FlopRates::f64}}) {
    machine.convolutions.*rate = measure_convolution(dtype, machine);
    machine.reductions.*rate = measure_reduction(dtype, machine);
    machine.functions.*rate = measure_function(dtype, machine);
  }
  return machine;
}

}  // namespace

const Machine& measured_machine() {
  static const Machine machine = measure();
  return machine;
}

Machine measured_machine(const std::string& path) {
  std::error_code unreadable;
  if (std::filesystem::exists(path, unreadable) || unreadable) return read_machine(path);
  write_machine(measured_machine(), path);
  return measured_machine();
}

}  // namespace palimpsest
