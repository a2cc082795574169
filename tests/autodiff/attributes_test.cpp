#include <limits>
#include <vector>

#include "autodiff/operation.h"
#include "tests/catch.h"

namespace palimpsest::attributes_test {
namespace {

struct Number {
  double value;
  bool operator==(const Number& other) const { return same_number(value, other.value); }
};
struct Named {
  std::vector<int> axes;
  bool operator==(const Named&) const = default;
};
struct Function {
  std::shared_ptr<int> state;
};

TEST_CASE("attributes of one type and value are equal") {
  CHECK(Attributes() == Attributes());
  CHECK(Attributes(3) == Attributes(3));
  CHECK(Attributes(Number{0.5}) == Attributes(Number{0.5}));
  CHECK(Attributes(Named{{1, 2}}) == Attributes(Named{{1, 2}}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(Attributes(Number{nan}) == Attributes(Number{nan}));
}

TEST_CASE("attributes of other types, values or signs are not equal") {
  CHECK_FALSE(Attributes() == Attributes(3));
  CHECK_FALSE(Attributes(3) == Attributes());
  CHECK_FALSE(Attributes(3) == Attributes(4));
  CHECK_FALSE(Attributes(3) == Attributes(3L));
  CHECK_FALSE(Attributes(Number{0.0}) == Attributes(Number{-0.0}));
  CHECK_FALSE(Attributes(Named{{1, 2}}) == Attributes(Named{{2, 1}}));
}

TEST_CASE("attributes that cannot be compared are equal to their copies alone") {
  const Attributes function(Function{std::make_shared<int>(1)});
  const Attributes copy = function;
  CHECK(copy == function);
  CHECK_FALSE(function == Attributes(function.as<Function>()));
}

}  // namespace
}  // namespace palimpsest::attributes_test
