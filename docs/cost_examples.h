#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// The operands of an example, and its sizes by name.
class CostOperands {
 public:
  CostOperands(Tape& tape, std::vector<Var> operands, std::map<std::string, double> sizes)
      : tape_(tape), operands_(std::move(operands)), sizes_(std::move(sizes)) {}

  Tape& tape() const { return tape_; }
  const Var& operator[](std::size_t i) const { return operands_[i]; }
  std::int64_t size(const std::string& name) const {
    return static_cast<std::int64_t>(sizes_.at(name));
  }

 private:
  Tape& tape_;
  std::vector<Var> operands_;
  std::map<std::string, double> sizes_;
};

/// The results of an example.
struct CostResults {
  std::vector<Var> values;
  // NOLINTNEXTLINE(google-explicit-constructor): what the functions return
  CostResults(const Var& value) : values{value} {}
  CostResults(std::initializer_list<Var> several) : values(several) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  CostResults(std::vector<Var> several) : values(std::move(several)) {}
};

/// A call whose recorded nodes say what a function costs. It is recorded with several sizes and
/// never run.
struct CostExample {
  /// The functions that cost as much, separated by spaces.
  std::string_view functions;
  /// Names, shapes and dtypes other than f32, as in "a (m, 4k), i (n) i64". The names of sizes are
  /// single letters.
  std::string_view operands;
  /// Sizes, as in "k=3 n=65536"; others are 1,024. They are doubled to see how work grows, so the
  /// term that grows fastest should be the largest one.
  std::string_view sizes;
  std::function<CostResults(const CostOperands&)> record;
};

const std::vector<CostExample>& cost_examples();

}  // namespace palimpsest
