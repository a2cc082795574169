#include "autodiff/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "autodiff/operations/products.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace einsum_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

struct Row {
  std::string equation;
  std::vector<Shape> shapes;
  /// The equation with every ellipsis written as letters and an explicit result; empty: `equation`
  /// already has this form
  std::string plain = {};
};

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == mark)
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  }
  return parts;
}

/// The definition of einsum: a loop over all letters. Axes of size 1 are broadcast.
Tensor naive(const std::string& equation, const std::vector<Tensor>& operands) {
  const std::size_t arrow = equation.find("->");
  const std::vector<std::string> names = split(equation.substr(0, arrow), ',');
  const std::string result = equation.substr(arrow + 2);
  std::string letters = result;
  for (const std::string& name : names) {
    for (const char c : name) {
      if (letters.find(c) == std::string::npos) letters += c;
    }
  }
  std::vector<std::int64_t> sizes(letters.size(), 1);
  for (std::size_t o = 0; o < names.size(); ++o) {
    for (std::size_t axis = 0; axis < names[o].size(); ++axis) {
      const std::int64_t size = operands[o].shape()[static_cast<int>(axis)];
      if (size != 1) sizes[letters.find(names[o][axis])] = size;
    }
  }
  Shape shape;
  std::int64_t all = 1;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    all *= sizes[i];
    if (i < result.size()) shape.push_back(sizes[i]);
  }
  const Tensor y = Tensor::zeros(shape, DType::f64);
  for (std::int64_t index = 0; index < all; ++index) {
    std::vector<std::int64_t> place(letters.size());
    std::int64_t rest = index;
    for (std::size_t i = letters.size(); i-- > 0;) {
      place[i] = rest % sizes[i];
      rest /= sizes[i];
    }
    const auto at = [&](const std::string& name, const Shape& of) {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < name.size(); ++axis) {
        const std::int64_t size = of[static_cast<int>(axis)];
        offset = offset * size + (size == 1 ? 0 : place[letters.find(name[axis])]);
      }
      return offset;
    };
    double product = 1;
    for (std::size_t o = 0; o < names.size(); ++o) {
      product *= operands[o].at(at(names[o], operands[o].shape()));
    }
    y.data<double>()[static_cast<std::size_t>(at(result, shape))] += product;
  }
  return y;
}

std::string error_for(const std::string& equation, const std::vector<Shape>& shapes) {
  Tape tape;
  std::vector<Var> operands;
  for (const Shape& shape : shapes) operands.push_back(tape.constant(Tensor::zeros(shape)));
  return error_of([&] { einsum(equation, operands); });
}

}  // namespace

TEST_CASE("einsum is the sum its letters say, and so is its gradient", "[einsum]") {
  const Row row = GENERATE(values<Row>({
      {"ij,jk->ik", {{2, 3}, {3, 4}}},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
      {"bhid,bhjd->bhij", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
      {"bihd,bjhd->bhij", {{2, 3, 2, 4}, {2, 5, 2, 4}}},
      {"ji,kj->ki", {{3, 2}, {4, 3}}},
      {"ij,kj", {{2, 3}, {4, 3}}, "ij,kj->ik"},
      {"ba,ac", {{2, 3}, {3, 4}}, "ba,ac->bc"},
      {"ij->ji", {{2, 3}}},
      {"ij->", {{2, 3}}},
      {"ij->j", {{2, 3}}},
      {"ii->i", {{3, 3}}},
      {"ii", {{3, 3}}, "ii->"},
      {"iji->j", {{3, 2, 3}}},
      {"iijj->ij", {{2, 2, 3, 3}}},
      {"iii->i", {{3, 3, 3}}},
      {"i,i->", {{4}, {4}}},
      {"i,i->i", {{4}, {4}}},
      {"i,j->ji", {{2}, {3}}},
      {"bi,bi->b", {{3, 4}, {3, 4}}},
      {"bi,b->ib", {{3, 4}, {3}}},
      {"b,bi->bi", {{3}, {3, 4}}},
      {"ij,kl->", {{2, 3}, {2, 2}}},
      {"ii,ij->j", {{3, 3}, {3, 2}}},
      {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
      {"a,b,c->cab", {{2}, {3}, {2}}},
      {"ab,bc,ca->", {{2, 3}, {3, 4}, {4, 2}}},
      {"...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 2}}, "abij,bjk->abik"},
      {"...i,i...", {{2, 3}, {3, 2}}, "ai,ia->a"},
      {"i...->...", {{2, 3, 2}}, "iab->ab"},
      {"...i,...i->...", {{1, 3}, {4, 3}}, "ai,ai->a"},
      {"...i,...i->i...", {{3}, {4, 3}}, "i,ai->ia"},
      {"...i,...i->i", {{1, 3}, {4, 3}}, "ai,ai->i"},
      {" i j , j -> i ", {{2, 3}, {3}}, "ij,j->i"},
      {"ij,jk->ik", {{2, 0}, {0, 3}}},
      {"ii->i", {{0, 0}}},
      {",i->i", {{}, {3}}},
  }));
  CAPTURE(row.equation);
  std::vector<Tensor> operands;
  for (const Shape& shape : row.shapes) {
    operands.push_back(Tensor::normal(shape, 80 + operands.size(), 0, 1, DType::f64));
  }
  Tape tape;
  std::vector<Var> vars;
  for (const Tensor& operand : operands) vars.push_back(tape.constant(operand));
  const Tensor y = einsum(row.equation, vars).value();
  const Tensor expected = naive(row.plain.empty() ? row.equation : row.plain, operands);
  REQUIRE(y.shape() == expected.shape());
  double worst = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    worst = std::max(worst, std::abs(y.at(i) - expected.at(i)));
  }
  CHECK(worst < 1e-13);
  const auto checked = gradcheck([&](auto xs) { return einsum(row.equation, xs); }, operands);
  INFO(checked.message);
  CHECK(checked.passed);
}

TEST_CASE("einsum explains what it cannot read", "[einsum]") {
  CHECK_THAT(error_for("ij,jk->ik", {{2, 3}}), Contains("\"ij,jk->ik\"") && Contains("1 given"));
  CHECK_THAT(error_for("ij->ij", {{2, 3}, {2}}), Contains("has 1 operands, not the 2 given"));
  CHECK_THAT(error_for("ijk->i", {{2, 3}}), Contains("3 letters for operand 0 of 2 axes"));
  CHECK_THAT(error_for("ij->k", {{2, 3}}), Contains("'k'") && Contains("no operand"));
  CHECK_THAT(error_for("ij->ii", {{2, 3}}), Contains("twice"));
  CHECK_THAT(error_for("i*->i", {{2, 3}}), Contains("unexpected '*'"));
  CHECK_THAT(error_for("....i->i", {{2, 3}}), Contains("unexpected '.'"));
  CHECK_THAT(error_for("ij,jk->ik", {{2, 3}, {4, 5}}),
             Contains("'j' sizes 3 and 4") && Contains("(2, 3), (4, 5); they must be equal"));
  CHECK_THAT(error_for("...i,...i->i", {{2, 3}, {4, 3}}), Contains("ellipsis sizes 2 and 4"));
  CHECK_THAT(error_for("ii->i", {{2, 3}}), Contains("'i' sizes 2 and 3"));
}

TEST_CASE("einsum records no copy of operands that lie as a product wants them", "[einsum]") {
  Tape tape;
  const Var a = tape.constant(Tensor::zeros({2, 3, 4}));
  const Var b = tape.constant(Tensor::zeros({2, 5, 4}));
  const Var c = tape.constant(Tensor::zeros({2, 4, 3}));
  const NodeId first = tape.node_count();
  einsum("bij,bkj->bik", {a, b});
  einsum("bij,bjk->bik", {a, c});
  einsum("bji,bjk->bik", {c, c});
  for (NodeId node = first; node < tape.node_count(); ++node) {
    CHECK((tape.operation(node).view || tape.operation(node).name == "matmul"));
  }
}

TEST_CASE("dot, outer and linear are products", "[einsum]") {
  Tape tape;
  const Var a = tape.constant(Tensor::vector({1, 2, 3}));
  const Var b = tape.constant(Tensor::vector({10, 20, 30}));
  CHECK(dot(a, b).item() == 140);
  CHECK(same_bits(outer(a, b).value(), Tensor::matrix({{10, 20, 30}, {20, 40, 60}, {30, 60, 90}})));
  const Var w = tape.constant(Tensor::matrix({{1, 1}, {0, 1}, {0, 1}}));
  const Var bias = tape.constant(Tensor::vector({5, 6}));
  CHECK(same_bits(linear(a, w, bias).value(), Tensor::vector({6, 12})));
  CHECK(linear(tape.constant(Tensor::zeros({4, 2, 3})), w).shape() == Shape{4, 2, 2});
  CHECK_THROWS_AS(linear(bias, w), ShapeError);
  CHECK_THROWS_AS(linear(a, w, a), ShapeError);
  CHECK_THROWS_WITH(dot(a, w), Contains("[dot]") && Contains("vectors"));
}

}  // namespace einsum_test
