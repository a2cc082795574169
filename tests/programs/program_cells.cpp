#include <algorithm>
#include <iterator>
#include <random>
#include <sstream>

#include "tests/programs/program_checks.h"

namespace palimpsest {
namespace {

constexpr const char* mode_names[] = {"lazy",          "eager",    "hybrid", "program", "evaluated",
                                      "micro-batches", "replicas", "stages", "devices"};

using Mode = Cell::Mode;

/// How many of twelve cells have a budget. Planning takes most of the time of a check, and longest
/// where a program is planned in parts, or again for each budget that an error names.
std::size_t twelfths_with_budget(Mode mode) {
  switch (mode) {
    case Mode::devices:
      return 4;
    case Mode::hybrid:
    case Mode::replicas:
    case Mode::stages:
      return 6;
    default:
      return 9;
  }
}

/// The number of nodes of the gradients of a seed's program.
NodeId size_of_gradients(std::uint64_t seed) {
  try {
    Tape tape;
    const ComposedProgram program = compose(tape, program_of(seed));
    (void)gradient(program.loss, program.parameters);
    return tape.node_count();
  } catch (const std::exception&) {
    return 0;  // not a program that can be run
  }
}

}  // namespace

bool has_time_to_plan(std::uint64_t seed, std::uint32_t index) {
  if (seed < first_in_bulk) return true;
  constexpr std::uint64_t few_nodes = 50;
  const std::uint64_t times_longer = size_of_gradients(seed) / few_nodes;
  return times_longer == 0 || (seed + index) % (8 * times_longer) == 0;
}

bool is_executed(Cell::Mode mode) { return mode >= Mode::micro_batches; }

Cell cell_of(std::uint64_t seed, std::uint32_t index) {
  const bool with_modules = seed >= first_with_modules;
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                         index, 7u};
  std::mt19937_64 random(sequence);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  constexpr const char* planners[] = {
      "auto",      "keep_all", "reordered",  "greedy",  "quick",   "search", "square_root",
      "uniform:3", "every:4",  "binomial:3", "chain:4", "min_cut", "online", "fraction:0.5"};
  Cell cell;
  cell.mode = static_cast<Cell::Mode>(below(std::size(mode_names)));
  cell.fuse = below(4) != 0;
  cell.simplify = below(4) != 0 || is_executed(cell.mode);
  cell.threads = 1 + static_cast<int>(below(4));
  const bool can_keep_results = cell.mode != Mode::program && !is_executed(cell.mode);
  cell.memory = static_cast<AllocationPolicy>(below(can_keep_results ? 4 : 3));
  const bool plans =
      cell.mode == Mode::lazy || cell.mode == Mode::program || cell.mode == Mode::evaluated;
  if (plans && below(2) == 0) cell.planner = planners[below(std::size(planners))];
  const bool has_budget =
      with_modules ? below(12) < twelfths_with_budget(cell.mode) : below(4) != 0;
  if (has_budget) cell.share = static_cast<double>(below(11)) / 10;
  if (cell.share && !has_time_to_plan(seed, index)) cell.share.reset();
  if (cell.mode < Cell::Mode::evaluated && below(4) == 0) {
    cell.precision =
        Precision{static_cast<PrecisionKind>(below(4)), below(2) == 0 ? DType::bf16 : DType::f16};
  }
  const bool has_outputs =
      cell.mode != Mode::evaluated && cell.mode != Mode::stages && cell.mode != Mode::devices;
  cell.outputs = has_outputs && below(2) == 0;
  // Each program of a cell takes the compiler 0.15 s. Eager cells have no groups.
  constexpr std::size_t cells_per_native_one = 24;
  cell.native = below(cells_per_native_one) == 0 && cell.fuse && cell.mode != Mode::eager;
  constexpr std::size_t cells_per_resumed_one = 16;
  cell.resumes = below(cells_per_resumed_one) == 0 && cell.mode != Mode::evaluated;
  cell.slow_arithmetic = below(3) == 0;
  cell.changes = cell.mode <= Mode::hybrid && below(3) == 0;
  const bool has_tapes = cell.mode == Mode::micro_batches || cell.mode == Mode::replicas;
  cell.hybrid_parts = has_tapes && below(4) == 0;
  cell.uneven = is_executed(cell.mode) && below(2) == 0;
  return cell;
}

RunOptions options_of(const Cell& cell) {
  RunOptions options;
  options.fuse = cell.fuse;
  options.simplify = cell.simplify;
  options.threads = cell.threads;
  options.memory = cell.memory;
  options.native = cell.native ? NativeCode::at_once : NativeCode::off;
  if (cell.slow_arithmetic) options.machine.flops_per_second = 1e6;
  if (cell.planner.empty()) return options;
  const bool timed = named_planner(cell.planner).timed;
  options.planner = planner_named(cell.planner, timed ? std::optional(0.02) : std::nullopt);
  return options;
}

ExecutionStrategy strategy_of(const Cell& cell, const RunOptions& options) {
  ExecutionStrategy strategy;
  strategy.run.fuse = options.fuse;
  strategy.run.native = options.native;
  strategy.run.machine = options.machine;
  strategy.run.memory_budget = options.memory_budget;
  strategy.run.threads = options.threads;
  strategy.run.stop = options.stop;
  strategy.run.progress = options.progress;
  if (cell.hybrid_parts) strategy.mode = ExecutionMode::hybrid;
  switch (cell.mode) {
    case Mode::replicas:
      strategy.parallelism = ParallelMode::data_parallel;
      strategy.workers = 2;
      strategy.run.threads = std::max(options.threads, 2);
      break;
    case Mode::stages:
      strategy.parallelism = ParallelMode::pipeline;
      strategy.stages = 2;
      strategy.accumulation = 2;
      break;
    case Mode::devices:
      strategy.parallelism = ParallelMode::model_parallel;
      strategy.devices = {Device{}, Device{}};
      strategy.accumulation = 2;
      break;
    default:
      strategy.accumulation = 2;
      strategy.run.memory = cell.memory;
  }
  return strategy;
}

std::string to_string(const Cell& cell) {
  std::ostringstream text;
  text << mode_names[static_cast<std::size_t>(cell.mode)] << ", " << cell.threads << " threads, "
       << name_of(cell.memory);
  if (!cell.fuse) text << ", not fused";
  if (!cell.simplify) text << ", not simplified";
  if (!cell.planner.empty()) text << ", planned by " << cell.planner;
  if (cell.share) text << ", in " << *cell.share << " of the bytes";
  if (cell.outputs) text << ", with outputs";
  if (cell.native) text << ", native";
  if (cell.resumes) text << ", resumed";
  if (cell.slow_arithmetic) text << ", slow arithmetic";
  if (cell.changes) text << ", changed";
  if (cell.hybrid_parts) text << ", hybrid";
  if (cell.uneven) text << ", in uneven parts";
  if (cell.precision) text << ", in " << cell.precision->summary() << " precision";
  return text.str();
}

}  // namespace palimpsest
