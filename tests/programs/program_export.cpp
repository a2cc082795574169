#include "tests/programs/program_export.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "autodiff/gradient.h"
#include "tests/strategy/export/exported_runs.h"

namespace palimpsest {
namespace {

/// Both losses, their gradients, and the last value, in the order of `reference_of`.
Program program_with_gradients(const ProgramText& text) {
  return Program::values(
      [&](Tape& tape) {
        const ComposedProgram program = compose(tape, text);
        std::vector<Var> values;
        for (const Var& loss : {program.loss, program.other_loss}) {
          values.push_back(loss);
          std::ranges::copy(gradient(loss, program.parameters), std::back_inserter(values));
        }
        values.push_back(program.last);
        return values;
      },
      {.threads = 1});
}

/// The program in C, or nothing if C cannot express it.
std::optional<ExportedC> exported(const Program& program, Bytes budget, const std::string& name) {
  try {
    return export_c(program, {.memory_budget = budget, .name = name});
  } catch (const ArgumentError&) {
    return {};
  } catch (const DTypeError&) {
    return {};
  }
}

/// Whether numbers agree but for rounding, which a program of many operations in f32 amplifies.
/// Sums of f32 near 1 may cancel to about 1e-6.
bool agree(const Tensor& found, const Tensor& expected) {
  constexpr double tolerance = 1e-3;
  double largest = 1e-2;
  double most = 0;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double x = found.at(i);
    const double y = expected.at(i);
    if (std::isfinite(y)) largest = std::max(largest, std::abs(y));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x - y)) return false;
    most = std::max(most, std::abs(x - y));
  }
  return most <= tolerance * largest;
}

}  // namespace

CRun c_run_of(const Program& program, ExportedC exported) {
  CRun run{.exported = std::move(exported), .tensors = {}};
  const Tape& tape = program.tape();
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.is_parameter(node)) continue;
    const ValueId value = tape.first_output(node);
    run.tensors.emplace_back(tape.buffer(value), tape.shape(value), tape.dtype(value));
  }
  run.tensors.resize(run.exported.pointers.size());
  return run;
}

std::optional<std::string> problem_in_c(const ProgramText& text, const Results& expected) {
  if (c_compiler().empty()) return {};
  const Program program = program_with_gradients(text);
  auto whole = exported(program, unlimited, "whole");
  if (!whole) return {};
  std::vector<CRun> runs{c_run_of(program, std::move(*whole))};
  try {
    (void)exported(program, 1, "small");
  } catch (const BudgetError& error) {
    const Bytes budget = error.smallest_feasible();
    ExportedC small = export_c(program, {.memory_budget = budget, .name = "small"});
    if (small.total_bytes() > budget) return "exported C takes more than its budget";
    runs.push_back(c_run_of(program, std::move(small)));
  }
  const std::vector<CResult> results = run_in_c(runs);
  const CBuild& build = c_builds()[text.seed % c_builds().size()];
  const std::vector<CResult> built = run_in_c(runs, build);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto are_same = [&](const std::vector<CResult>& others) {
      return std::ranges::equal(results[i].tensors, others[i].tensors, same_numbers);
    };
    // Compilers compute functions of <math.h> of constants themselves, with other rounding. Without
    // builtins they also leave copies to the C library, which hides only defects of these.
    if (!are_same(built) &&
        !are_same(run_in_c(runs, {build.compiler, build.level + " -fno-builtin"}))) {
      return "exported C has other bits by " + build.compiler + " " + build.level;
    }
    const std::string& name = runs[i].exported.name;
    if (results[i].status != 0) return "exported C fails: " + name;
    const std::size_t first = runs[i].exported.pointers.size() - expected.size();
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const Tensor& found = results[i].tensors[first + k];
      if (agree(found, expected[k].tensor)) continue;
      std::ostringstream problem;
      problem << "the " << expected[k].name << " of exported C, " << name << ", is\n"
              << found << "\nnot\n"
              << expected[k].tensor;
      return problem.str();
    }
    if (i > 0 && !std::ranges::equal(results[i].tensors, results[0].tensors, same_numbers)) {
      return "exported C depends on its budget";
    }
  }
  return {};
}

}  // namespace palimpsest
