#include "tests/oracle/oracle_rows.h"

#include <cmath>
#include <limits>

namespace palimpsest::oracle {
namespace {

struct Ends {
  double least, smallest, largest, epsilon;  // smallest subnormal, smallest normal, largest finite,
                                             // distance from 1 to the next number
};

Ends ends_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {0x1p-1074, 0x1p-1022, std::numeric_limits<double>::max(), 0x1p-52};
    case DType::bf16:
      return {0x1p-133, 0x1p-126, 0x1.fep127, 0x1p-7};
    case DType::f16:
      return {0x1p-24, 0x1p-14, 65504, 0x1p-10};
    default:
      return {0x1p-149, 0x1p-126, std::numeric_limits<float>::max(), 0x1p-23};
  }
}

}  // namespace

std::vector<double> special_numbers(DType dtype) {
  const Ends ends = ends_of(dtype);
  std::vector<double> all = {0, -0.0, std::numeric_limits<double>::quiet_NaN()};
  for (const double x : {std::numeric_limits<double>::infinity(), ends.least, ends.smallest,
                         ends.largest, 1.0, 1 + ends.epsilon, 1 - ends.epsilon / 2, 0.5, 1.5, 2.0,
                         ends.epsilon, 1e-3, 0.75, 3.0, 3.140625, 20.0, 88.0, 1000.0}) {
    all.push_back(x);
    all.push_back(-x);
  }
  return all;
}

Tensor numbers(const std::vector<double>& values, DType dtype) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}).to(dtype);
}

std::vector<OperationRow> rows_of(DType dtype) {
  std::vector<OperationRow> rows = function_rows(dtype);
  for (const auto& more : {line_rows(dtype), layer_rows(dtype)}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace palimpsest::oracle
