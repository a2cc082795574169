// Operations that turn a line into one value or into another line: reductions, softmax,
// classification losses. Each line has its own row, because the largest number of one line would
// hide the errors of the others.
#include <limits>
#include <string>
#include <utility>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/sorting.h"
#include "tests/oracle/oracle_rows.h"

namespace palimpsest::oracle {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct LineFunction {
  const char* name;
  Var (*call)(const Var&);
  int order = 2;
};

const LineFunction line_functions[] = {
    {"sum", [](const Var& x) { return sum(x); }},
    {"mean", [](const Var& x) { return mean(x); }},
    {"prod", [](const Var& x) { return prod(x); }},
    {"max", [](const Var& x) { return max(x); }},
    {"min", [](const Var& x) { return min(x); }},
    {"argmax", [](const Var& x) { return argmax(x); }, 0},
    {"argmin", [](const Var& x) { return argmin(x); }, 0},
    {"variance", [](const Var& x) { return variance(x); }},
    {"variance, uncorrected", [](const Var& x) { return variance(x, {}, 0); }},
    {"standard_deviation", [](const Var& x) { return standard_deviation(x); }},
    {"standard_deviation, uncorrected", [](const Var& x) { return standard_deviation(x, {}, 0); }},
    {"norm", [](const Var& x) { return norm(x); }},
    {"norm(1)", [](const Var& x) { return norm(x, 1); }},
    {"norm(3.5)", [](const Var& x) { return norm(x, 3.5); }},
    {"norm(inf)", [](const Var& x) { return norm(x, infinity); }},
    {"logsumexp", [](const Var& x) { return logsumexp(x); }},
    {"cumsum", [](const Var& x) { return cumsum(x, 0); }},
    {"cumsum, reverse", [](const Var& x) { return cumsum(x, 0, true); }},
    {"cumprod", [](const Var& x) { return cumprod(x, 0); }},
    {"cummax", [](const Var& x) { return cummax(x, 0).values; }},
    {"cummax, positions", [](const Var& x) { return cummax(x, 0).indices; }, 0},
    {"cummin", [](const Var& x) { return cummin(x, 0).values; }},
    {"cummin, positions", [](const Var& x) { return cummin(x, 0).indices; }, 0},
    {"logcumsumexp", [](const Var& x) { return logcumsumexp(x, 0); }},
    {"sort", [](const Var& x) { return sort(x).values; }},
    {"sort, descending", [](const Var& x) { return sort(x, 0, true).values; }},
    {"argsort", [](const Var& x) { return argsort(x); }, 0},
    {"argsort, descending", [](const Var& x) { return argsort(x, 0, true); }, 0},
    {"median", [](const Var& x) { return median(x, 0).values; }},
    {"nanmedian", [](const Var& x) { return nanmedian(x, 0).values; }},
    {"quantile(0.3)", [](const Var& x) { return quantile(x, 0.3); }},
    {"nanquantile(0.3)", [](const Var& x) { return nanquantile(x, 0.3); }},
    {"softmax", [](const Var& x) { return softmax(x); }},
    {"log_softmax", [](const Var& x) { return log_softmax(x); }},
    {"layer_norm", [](const Var& x) { return layer_norm(x); }},
    {"rms_norm", [](const Var& x) { return rms_norm(x); }},
    {"instance_norm", [](const Var& x) { return instance_norm(reshape(x, {1, 1, -1})); }},
    {"batch_norm", [](const Var& x) { return batch_norm(unsqueeze(x, 1)).y; }},
};

using Classify = Var (*)(const Var&, const Var&, const ClassificationOptions&, Where);

}  // namespace

std::vector<OperationRow> line_rows(DType dtype) {
  const std::vector<double> specials = special_numbers(dtype);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double least = specials[5];
  const double smallest = specials[7];
  const double largest = specials[9];
  const std::vector<std::pair<const char*, std::vector<double>>> lines = {
      {"nothing", {}},
      {"one number", {0.75}},
      {"zero", {0}},
      {"zeros", {0, 0, 0}},
      {"negative zeros", {-0.0, -0.0}},
      {"equal numbers", {1.5, 1.5, 1.5, 1.5}},
      {"two largest", {-1, 2, 0.5, 2}},
      {"one zero", {2, 0, -3}},
      {"two zeros", {2, 0, -3, 0}},
      {"NaN", {1, nan, 2}},
      {"only NaN", {nan}},
      {"infinity", {1, infinity, 2}},
      {"negative infinity", {1, -infinity, 2}},
      {"both infinities", {infinity, 1, -infinity}},
      {"two infinities", {infinity, infinity, 1}},
      {"negative infinities only", {-infinity, -infinity}},
      {"NaN and infinity", {infinity, nan, 0}},
      {"largest numbers", {largest, largest, 1}},
      {"largest numbers of both signs", {largest, -largest, 1}},
      {"smallest numbers", {smallest, -smallest, smallest}},
      {"subnormal numbers", {least, 3 * least, -least}},
      {"far apart", {1000, 0.5, -1000}},
      {"far from zero", {1000, 1001, 1002, 1000}},
      {"odd number of ordinary ones", {0.25, -1.5, 2, 0.75, -0.5, 1.25, 3}},
  };
  std::vector<OperationRow> rows;
  for (const LineFunction& f : line_functions) {
    const auto call = f.call;
    for (const auto& [label, line] : lines) {
      rows.push_back({f.name,
                      label,
                      {numbers(line, dtype)},
                      [call](auto xs) { return call(xs[0]); },
                      f.order});
    }
  }
  // Positions 0 and 2 count. Options that ignore class 1 ignore position 1.
  const Tensor classes = Tensor::from<std::int64_t>({2, 1, 0}, {3});
  const std::vector<std::pair<const char*, std::vector<double>>> logits = {
      {"ordinary numbers", {0.5, -1, 2, 0, 1, 3, 1.5, 1, -2}},
      {"NaN at place 1", {0.5, -1, 2, nan, 1, 3, 1.5, 1, -2}},
      {"infinity at place 1", {0.5, -1, 2, infinity, 1, 3, 1.5, 1, -2}},
      {"a class of place 0 excluded", {0.5, -infinity, 2, 0, 1, 3, 1.5, 1, -2}},
      {"the class of place 0 excluded", {0.5, 1, -infinity, 0, 1, 3, 1.5, 1, -2}},
      {"far apart", {1000, -1000, 0, 0, 1, 3, -1000, 1000, 5}},
      {"largest numbers", {largest, -largest, 0, 0, 1, 3, 1, 2, largest}},
  };
  const ClassificationOptions ignoring{.ignore_index = 1};
  const ClassificationOptions each{.reduction = Reduction::none, .ignore_index = 1};
  const std::vector<std::pair<const char*, ClassificationOptions>> options = {
      {"", {}},
      {", sum", {.reduction = Reduction::sum}},
      {", smoothed", {.label_smoothing = 0.25}},
      {", ignoring", ignoring},
      {", ignoring, each", each}};
  for (const auto& [name, call] :
       {std::pair<const char*, Classify>("cross_entropy", cross_entropy), {"nll", nll}}) {
    for (const auto& [suffix, option] : options) {
      if (call == static_cast<Classify>(nll) && option.label_smoothing != 0) continue;
      for (const auto& [label, numbers_of_logits] : logits) {
        rows.push_back({name + std::string(suffix),
                        label,
                        {numbers(numbers_of_logits, dtype).reshape({3, 3}), classes},
                        [call = call, option = option](auto xs) {
                          return call(xs[0], xs[1], option, Where::current());
                        }});
      }
    }
  }
  rows.push_back({"cross_entropy, ignoring",
                  "every place ignored",
                  {Tensor::ones({2, 3}, dtype), Tensor::from<std::int64_t>({1, 1}, {2})},
                  [ignoring](auto xs) { return cross_entropy(xs[0], xs[1], ignoring); }});
  // Multiplies the logits by a weight, to test which gradient an ignored position contributes to
  // it.
  rows.push_back(
      {"cross_entropy of weighted logits, ignoring",
       "NaN at place 1",
       {numbers({0.5, -1, 2, nan, 1, 3, 1.5, 1, -2}, dtype).reshape({3, 3}), numbers({1.5}, dtype),
        classes},
       [ignoring](auto xs) { return cross_entropy(multiply(xs[0], xs[1]), xs[2], ignoring); },
       1});
  return rows;
}

}  // namespace palimpsest::oracle
