#include <algorithm>
#include <iomanip>
#include <sstream>

#include "checkpoint/block.h"
#include "tests/catch.h"
#include "tests/memory/kinds.h"
#include "tests/memory/outside.h"

namespace palimpsest::matrix_test {
namespace {

/// What a run may take in addition to its budget and to the metadata that its report names.
Bytes allowance(Bytes budget) { return budget / 50 + 64_KiB; }

Bytes metadata_in(const Report& report) {
  return report.tape_metadata + report.plan_cache + report.native.code;
}

/// A step within a budget.
struct Cell {
  Bytes budget;
  Bytes growth;  // of the heap and of mapped pages, without metadata
  Bytes reported;

  bool keeps_to_budget() const {
    return growth <= budget + allowance(budget) && reported <= budget;
  }
};

/// The smallest budget that errors name. A kind that computes while it records names a budget for
/// what it has recorded so far.
Bytes smallest_budget(const Kind& kind, const ModelTensors& tensors) {
  for (Bytes budget = 1;;) {
    try {
      kind.begin(tensors, budget)->step();
      return budget;
    } catch (const BudgetError& error) {
      REQUIRE(error.smallest_feasible() > budget);
      budget = error.smallest_feasible();
    }
  }
}

/// The budgets of the columns: shares of what the kind takes if it keeps all, and the smallest one.
std::vector<Bytes> budgets_of(const Kind& kind, const ModelTensors& tensors) {
  const Bytes keep_all = kind.begin(tensors, unlimited)->step().keep_all_peak;
  const Bytes smallest = smallest_budget(kind, tensors);
  const auto share = [&](double of) {
    return std::max(static_cast<Bytes>(of * static_cast<double>(keep_all)), smallest);
  };
  std::vector<Bytes> budgets{keep_all, share(0.6), share(0.3), smallest};
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  return budgets;
}

/// The first step of a new trainer, and a later one.
std::vector<Cell> cells_of(const Kind& kind, const ModelTensors& tensors, Bytes budget) {
  release_spare(spare_bytes());
  const Bytes before = bytes_taken();
  std::vector<Cell> cells;
  std::unique_ptr<Trainer> trainer;
  for (int step = 0; step < 2; ++step) {
    restart_most_taken();
    if (trainer == nullptr) trainer = kind.begin(tensors, budget);
    const Report report = trainer->step();
    const Bytes growth = most_taken() - before - metadata_in(report);
    cells.push_back({budget, growth, report.measured_peak});
  }
  return cells;
}

TEST_CASE("the heap grows by the budget and hardly more, in every kind of run") {
  std::ostringstream table;
  table
      << "growth relative to the budget, cold and warm, at 100, 60 and 30 % of keep-all and at the "
         "smallest budget; too much where marked by !\n"
      << std::fixed << std::setprecision(3);
  bool all_keep_to_budget = true;
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    // Starts threads, and makes what the process keeps.
    kind.begin(tensors_of({64, 16, 4}, kind), unlimited)->step();
    const ModelTensors tensors = tensors_of({65536, 16, 6}, kind);
    table << std::left << std::setw(24) << kind.name << std::right;
    for (const Bytes budget : budgets_of(kind, tensors)) {
      REQUIRE(budget >= 16_MiB);
      for (const Cell& cell : cells_of(kind, tensors, budget)) {
        table << std::setw(8) << static_cast<double>(cell.growth) / static_cast<double>(budget)
              << (cell.keeps_to_budget() ? ' ' : '!');
        all_keep_to_budget = all_keep_to_budget && cell.keeps_to_budget();
      }
    }
    table << "\n";
  }
  INFO(table.str());
  CHECK(all_keep_to_budget);
}

}  // namespace
}  // namespace palimpsest::matrix_test
