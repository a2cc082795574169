#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "autodiff/gradient.h"
#include "strategy/export/emitters.h"
#include "tests/autodiff/operation_rows.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/export/exported_runs.h"
#include "tests/strategy/export/lacks_c_compiler.h"

namespace palimpsest::export_rows_test {
namespace {

/// The value of a row and, if it has derivatives, its gradients.
Program program_of(const OperationRow& row, DType dtype) {
  return Program::values(
      [&](Tape& tape) {
        tape.set_seed(7);
        std::vector<Var> xs;
        std::vector<Var> floating;
        for (const Tensor& input : row.inputs) {
          const bool is_parameter = is_floating(input.dtype());
          xs.push_back(is_parameter ? tape.parameter(input.to(dtype)) : tape.constant(input));
          if (is_parameter) floating.push_back(xs.back());
        }
        std::vector<Var> results{row.call(xs)};
        if (row.order > 0) {
          // Other seeds than ones: the gradient of a sum may be 0, as that of a softmax.
          const ValueType type = results[0].type();
          const Var seed = tape.constant(Tensor::normal(type.shape, 11).to(type.dtype));
          const std::vector<Var> adjoints = vjp(results, floating, {&seed, 1});
          results.insert(results.end(), adjoints.begin(), adjoints.end());
        }
        return results;
      },
      {.threads = 1});
}

bool is_exported(const Tape& tape, NodeId node) {
  const Operation& operation = tape.operation(node);
  return operation.leaf || operation.view || find_c_emitter(operation.name) != nullptr;
}

std::vector<Tensor> arguments_of(const Program& program, const ExportedC& exported) {
  std::vector<Tensor> tensors;
  const Tape& tape = program.tape();
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.is_parameter(node)) continue;
    const ValueId value = tape.first_output(node);
    tensors.emplace_back(tape.buffer(value), tape.shape(value), tape.dtype(value));
  }
  tensors.resize(exported.pointers.size());
  return tensors;
}

/// The largest difference, relative to the largest element; infinite where one has a NaN.
double difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  double most = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.at(i);
    const double y = b.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x - y)) return INFINITY;
    most = std::max(most, std::abs(x - y));
  }
  for (std::int64_t i = 0; i < b.elements(); ++i) {
    if (std::isfinite(b.at(i))) largest = std::max(largest, std::abs(b.at(i)));
  }
  return most == 0 ? 0 : most / largest;
}

std::vector<Tensor> results_of(const Program& program) {
  Runner runner(program);
  runner.run();
  std::vector<Tensor> results;
  for (const Var& output : program.outputs()) results.push_back(runner.value(output));
  return results;
}

/// A row with its inputs rounded to f32.
OperationRow rounded(OperationRow row) {
  for (Tensor& input : row.inputs) {
    if (is_floating(input.dtype())) input = input.to(DType::f32).to(DType::f64);
  }
  return row;
}

struct Compared {
  std::string label;
  std::vector<Tensor> expected;
  std::vector<Tensor> exact;  ///< in f64, for the same inputs
  double most;                ///< tolerated in f32; rounding errors add up in long programs
};

/// Close to the engine's result. Where digits cancel in f32: close to the exact result, or no less
/// accurate than the engine's.
bool agrees(const Tensor& found, const Tensor& expected, const Tensor& exact, double most) {
  if (expected.dtype() == DType::f64) return difference(found, expected) <= 1e-12;
  if (expected.dtype() != DType::f32) return difference(found, expected) == 0;
  return difference(found, expected) <= most ||
         difference(found, exact) <= std::max(most, difference(expected, exact));
}

/// Exports all rows of a family that can be exported, and compares the results. The first row of an
/// operation is exported in f32 and f64, the others in one of them.
void check_family(const RowFamily& family) {
  std::vector<CRun> runs;
  std::vector<Compared> compared;
  std::map<std::string, int> seen;
  for (const OperationRow& row : family.rows()) {
    const int number = seen[row.operation]++;
    for (const DType dtype : {DType::f32, DType::f64}) {
      if (number > 0 && (number % 2 == 0) != (dtype == DType::f32)) continue;
      const std::string label = row.operation + " " + row.label + " " + std::string(name_of(dtype));
      INFO(label);
      const Program program = program_of(row, dtype);
      const std::string error =
          error_of([&] { export_c(program, {.name = "row" + std::to_string(runs.size())}); });
      if (!error.empty()) {
        // It is refused for an operation or a dtype that a node has.
        bool is_named = false;
        for (NodeId node = 0; node < program.tape().node_count(); ++node) {
          const std::string name(program.tape().operation(node).name);
          const bool says = error.find("the operation " + name + ",") != std::string::npos;
          const bool has_dtype = error.find("has an operand of") != std::string::npos;
          is_named = is_named || (says && (has_dtype || !is_exported(program.tape(), node)));
        }
        INFO(error);
        CHECK(is_named);
        continue;
      }
      compared.push_back({label, results_of(program),
                          results_of(program_of(rounded(row), DType::f64)),
                          1e-6 * std::max(1.0, program.tape().node_count() / 50.0)});
      ExportedC exported = export_c(program, {.name = "row" + std::to_string(runs.size())});
      std::vector<Tensor> tensors = arguments_of(program, exported);
      runs.push_back({std::move(exported), std::move(tensors)});
    }
  }
  if (runs.empty()) return;
  const std::vector<CResult> results = run_in_c(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    INFO(compared[i].label);
    CHECK(results[i].status == 0);
    const std::vector<Tensor>& expected = compared[i].expected;
    const std::size_t first = runs[i].exported.pointers.size() - expected.size();
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const Tensor& found = results[i].tensors[first + k];
      INFO("result " << k << "\n" << found << "\nexpected\n" << expected[k]);
      CHECK(agrees(found, expected[k], compared[i].exact[k], compared[i].most));
    }
  }
}

TEST_CASE("every row of the exported operations has the engine's results", "[export]") {
  if (lacks_c_compiler()) return;
  for (const RowFamily& family : row_families()) {
    DYNAMIC_SECTION(family.name) { check_family(family); }
  }
}

TEST_CASE("every emitter has a row", "[export]") {
  std::set<std::string> recorded{"copy"};
  for (const RowFamily& family : row_families()) {
    for (const OperationRow& row : family.rows()) {
      const Program program = program_of(row, DType::f64);
      for (NodeId node = 0; node < program.tape().node_count(); ++node) {
        recorded.insert(std::string(program.tape().operation(node).name));
      }
    }
  }
  for (const auto& [name, emitter] : c_emitters()) {
    INFO(name);
    CHECK(recorded.contains(name));
  }
}

}  // namespace
}  // namespace palimpsest::export_rows_test
