#include "tests/autodiff/lattice/lattice.h"

#include "autodiff/operation.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "tests/autodiff/lattice/lattice_rows.h"
#include "tests/catch.h"

namespace palimpsest::lattice {
namespace {

void check_at_all_points(const OperationRow& row, const Limits& limits, Findings& findings) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (int round = 0; round < limits.rounds; ++round) {
      for (const Points& points : points_of(row, dtype, round)) {
        check(row, points, dtype, limits, findings);
      }
    }
  }
}

Findings findings_of_all(const Limits& limits) {
  Findings findings;
  for (const RowFamily& family : row_families()) {
    for (const OperationRow& row : family.rows()) check_at_all_points(row, limits, findings);
  }
  return findings;
}

void require_no_complaints(const Findings& findings) {
  for (const std::string& complaint : findings.complaints) UNSCOPED_INFO(complaint);
  CHECK(findings.complaints.size() == 0);
}

/// They take matrices that have a factor, positive numbers, or as many elements as were counted.
const std::set<std::string>& operations_that_may_refuse() {
  static const std::set<std::string> names{"cholesky",
                                           "eigh",
                                           "gamma_derivative",
                                           "gap_quotients",
                                           "inverse",
                                           "lexsort",
                                           "logdet",
                                           "log_gamma_variate",
                                           "nonzero",
                                           "pinv",
                                           "qr",
                                           "slogdet",
                                           "solve",
                                           "svd",
                                           "triangular_solve"};
  return names;
}

/// Rows of which no derivative and no value was checked, except large and empty ones.
std::string unchecked_rows(const Findings& findings) {
  std::string unchecked;
  for (const RowFamily& family : row_families()) {
    for (const OperationRow& row : family.rows()) {
      std::int64_t elements = 0;
      for (const Tensor& input : row.inputs) elements += input.elements();
      if (elements == 0 || elements > Limits().most_elements) continue;
      const std::string name = row.operation + ": " + row.label;
      const bool counts_otherwise = name == "nonzero: unique";  // at every point
      if (!counts_otherwise && !findings.rows.contains(name)) unchecked += name + "\n";
    }
  }
  return unchecked;
}

TEST_CASE("derivatives at points of the lattice lie between quotients, for every operation") {
  const Findings findings = findings_of_all({});
  require_no_complaints(findings);
  std::string missing;
  for (const Operation* operation : operations()) {
    const std::string name(operation->name);
    if (!findings.checked.contains(name)) missing += name + " ";
  }
  INFO("operations without a row that the lattice can check");
  CHECK(missing == "");
  INFO("rows of which the lattice checks nothing");
  CHECK(unchecked_rows(findings) == "");
  INFO("operations that refuse points");
  CHECK(findings.refusing == operations_that_may_refuse());
}

TEST_CASE("each row of the lattice is about rows of an operation") {
  std::string all;
  for (const RowFamily& family : row_families()) {
    for (const OperationRow& row : family.rows()) all += row.operation + ": " + row.label + "\n";
  }
  for (const LatticeRow& row : lattice_rows()) {
    INFO(row.rows);
    CHECK(all.find(row.rows) != all.npos);
  }
}

TEST_CASE("derivatives at all points of the lattice", "[.lattice-all]") {
  const Findings findings = findings_of_all({.rounds = 4, .elements = 12, .second = 6});
  require_no_complaints(findings);
  for (const LatticeRow& row : lattice_rows()) {
    for (const Convention& each : row.conventions) {
      INFO(row.rows << ": a convention that no derivative needs: " << each.statement);
      CHECK(findings.used.contains(each.statement));
    }
  }
  WARN(findings.rows.size() << " rows, " << findings.derivatives << " derivatives, "
                            << findings.conventions << " by a convention, " << findings.unstable
                            << " badly conditioned, " << findings.unknown << " without a quotient, "
                            << findings.refused << " points refused");
}

/// x where x > 0, else 0, with the given slope at 0.
OperationRow ramp(double slope_at_0) {
  return {"where", "ramp", {Tensor::zeros({2, 3}, DType::f64)}, [=](auto xs) {
            const Var at_0 = where(equal(xs[0], 0), slope_at_0, where(greater(xs[0], 0), 1.0, 0.0));
            const Var line = xs[0] * stop_gradient(cast(at_0, xs[0].dtype()));
            return line - stop_gradient(line) + stop_gradient(maximum(xs[0], 0));
          }};
}

TEST_CASE("the lattice finds a slope that is not between those of both sides") {
  for (const double slope : {0.0, 0.5, 1.0}) {
    Findings findings;
    check_at_all_points(ramp(slope), {}, findings);
    CHECK(findings.derivatives > 100);
    CHECK(findings.complaints.size() == 0);
  }
  for (const double slope : {-1.5, -0.05, 1.05}) {
    Findings findings;
    check_at_all_points(ramp(slope), {}, findings);
    CHECK(findings.complaints.size() > 4);
  }
}

}  // namespace
}  // namespace palimpsest::lattice
