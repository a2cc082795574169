#include "strategy/compile/native/group_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "autodiff/convert.h"
#include "strategy/compile/native/formulas.h"

namespace palimpsest {
namespace {

/// True for positive normal powers of two other than 1 whose reciprocal is normal. On a processor
/// that treats subnormal numbers as 0, products with a subnormal reciprocal would be 0.
bool has_exact_reciprocal(double number, DType dtype) {
  int exponent = 0;
  if (number == 1 || !std::isfinite(number) || std::frexp(number, &exponent) != 0.5) return false;
  const int most = dtype == DType::f64 ? std::numeric_limits<double>::max_exponent
                                       : std::numeric_limits<float>::max_exponent;
  return std::abs(exponent - 1) < most - 1;
}

}  // namespace

GroupParts::GroupParts(const FusedKernel& kernel, const Tape& tape, bool literals)
    : elements(kernel.elements_),
      reduced_elements(kernel.cut_.elements),
      segment(kernel.cut_.segment),
      segments(kernel.cut_.segments),
      is_one_call(kernel.is_one_call()) {
  for (const FusedKernel::SlotInfo& slot : kernel.slots_) {
    if (is_half(slot.dtype) || is_half(slot.held)) {
      problem = "16-bit types are interpreted";
      return;
    }
  }
  if (elements == 0) {
    problem = "it has no elements";
    return;
  }
  add_values(kernel);
  add_loads(kernel);
  add_operations(kernel, tape);
  if (literals) add_literals(kernel, tape);
  add_folds(kernel, tape);
  add_periods(kernel, tape);
}

std::int64_t GroupParts::widest_bytes() const {
  std::int64_t widest = 1;
  for (const Value& value : values) widest = std::max(widest, size_of(value.dtype));
  return widest;
}

bool GroupParts::keeps_whole(std::int64_t row) const {
  if (folds.empty()) return FusedKernel::line % row == 0;
  if (reduced_elements <= smallest_strip) return reduced_elements % row == 0;
  return reduced_elements % row == 0 && segment % row == 0 && folds[0].kernel.piece % row == 0;
}

void GroupParts::add_values(const FusedKernel& kernel) {
  using Place = FusedKernel::Place;
  using Kind = Value::Kind;
  for (const FusedKernel::SlotInfo& slot : kernel.slots_) {
    Value value{Kind::made, slot.index, slot.offset, slot.dtype};
    if (slot.place == Place::number) value.kind = Kind::number;
    if (slot.place == Place::output) value.kind = Kind::output;
    if (slot.place == Place::input) value.kind = slot.step == 0 ? Kind::repeated : Kind::input;
    values.push_back(value);
  }
  for (const FusedKernel::Spread& spread : kernel.spread_) {
    values[spread.tile] = {Kind::spread, spread.one, 0, values[spread.tile].dtype};
  }
}

void GroupParts::add_loads(const FusedKernel& kernel) {
  for (const FusedKernel::Load& load : kernel.loads_) {
    values[load.slot].kind = Value::Kind::load;
    values[load.slot].index = static_cast<std::uint32_t>(loads.size());
    Load& made = loads.emplace_back(Load{load.dtype, {}});
    for (const FusedKernel::Part& part : load.parts) {
      const bool is_read = part.made == none && part.input != none;
      const auto same = std::ranges::find_if(
          part_list, [&](const Part& known) { return is_read && known.input == part.input; });
      const auto index = static_cast<std::uint32_t>(same - part_list.begin());
      if (same == part_list.end()) {
        part_list.push_back({is_read ? part.input : none, part.made, part.number});
      }
      made.parts.push_back({part.begin, part.end, index, is_read ? &part.from : nullptr,
                            load.period < elements ? load.period : 0});
    }
  }
}

/// The name of a value in formulas.
std::string GroupParts::operand(std::uint32_t slot) const {
  const Value& value = values[slot];
  return name(value.kind == Value::Kind::spread ? value.index : slot);
}

void GroupParts::add_operations(const FusedKernel& kernel, const Tape& tape) {
  for (const FusedKernel::Instruction& step : kernel.instructions_) {
    Operation made{{}, step.kernel.run, step.node, step.output, {}, {}};
    made.inputs.assign(step.inputs.begin(), step.inputs.begin() + step.input_count);
    made.steps.assign(step.steps.begin(), step.steps.begin() + step.input_count);
    std::vector<std::string> names;
    std::vector<DType> dtypes;
    for (const std::uint32_t input : made.inputs) {
      names.push_back(operand(input));
      dtypes.push_back(values[input].dtype);
    }
    const bool has_number = step.number != none;
    const bool is_floating_result = is_floating(step.dtype);
    if (step.joined != nullptr) {
      made.formula = arithmetic_formula(std::span(step.arithmetic).first(names.size() - 1), names);
    } else if (is_floating_result && step.kernel.arithmetic != ArithmeticStep::none) {
      if (has_number) names.push_back(operand(step.number));
      made.formula = arithmetic_formula({&step.kernel.arithmetic, 1}, names);
    } else if (!tape.operation(step.node).of_user) {
      const std::string number = has_number ? operand(step.number) : std::string();
      made.formula = formula_of({tape.operation(step.node).name, step.dtype, dtypes, names, number})
                         .value_or(std::string());
    }
    if (!made.formula.empty() && has_number) made.inputs.push_back(step.number);
    operations.push_back(std::move(made));
  }
}

/// Factors of 2, since compilers then add, and divisors that are powers of two, since compilers
/// then multiply. Other numbers are read, so that groups that differ only in them have common code.
void GroupParts::add_literals(const FusedKernel& kernel, const Tape& tape) {
  std::vector<FusedKernel::Number> numbers(kernel.numbers_);
  kernel.make_numbers(tape, numbers);
  std::set<std::uint32_t> found;
  const auto add = [&](std::uint32_t slot, bool is_divisor) {
    if (slot == none) return;
    if (values[slot].kind == Value::Kind::spread) slot = values[slot].index;
    const Value& value = values[slot];
    if (value.kind != Value::Kind::number || !is_floating(value.dtype)) return;
    const FusedKernel::Number& number = numbers[value.index];
    double literal = 0;
    convert_one(value.dtype, number.bytes.data(), DType::f64,
                reinterpret_cast<std::byte*>(&literal));
    const bool is_faster = is_divisor ? has_exact_reciprocal(literal, value.dtype) : literal == 2;
    if (is_faster && found.insert(slot).second) literals.push_back({slot, number, literal});
  };
  for (const FusedKernel::Instruction& step : kernel.instructions_) {
    const auto operand = [&](std::size_t i) {
      return i < step.input_count ? step.inputs[i] : step.number;
    };
    const std::string_view name = tape.operation(step.node).name;
    if (step.joined != nullptr) {
      for (std::uint32_t i = 0; i + 1 < step.input_count; ++i) {
        if (step.arithmetic[i] == ArithmeticStep::multiply) add(operand(i + 1), false);
      }
      if (step.arithmetic[0] == ArithmeticStep::multiply) add(operand(0), false);
    } else if (step.kernel.arithmetic == ArithmeticStep::multiply) {
      add(operand(0), false);
      add(operand(1), false);
    } else if (name == "divide" || name == "divide_by") {
      add(operand(1), true);
    }
  }
}

void GroupParts::add_folds(const FusedKernel& kernel, const Tape& tape) {
  for (const FusedKernel::Fold& fold : kernel.folds_) {
    const std::string_view name = tape.operation(fold.node).name;
    const DType dtype = values[fold.input].dtype;
    const bool is_number = is_floating(dtype) || dtype == DType::i64 || dtype == DType::i32;
    const DType result = tape.dtype(tape.first_output(fold.node));
    folds.push_back({fold.kernel, fold.node, fold.input, fold.output, result,
                     is_number && (name == "sum" || name == "mean"), is_number && name == "sum"});
  }
}

void GroupParts::add_periods(const FusedKernel& kernel, const Tape& tape) {
  std::set<std::int64_t> found;
  const auto add = [&](const Shape& shape) {
    std::int64_t product = 1;
    for (int axis = shape.rank() - 1; axis > 0; --axis) {
      product *= shape[axis];
      if (product > 1) found.insert(product);
    }
  };
  for (const FusedKernel::Instruction& step : kernel.instructions_) {
    const Shape& shape = tape.shape(tape.first_output(step.node));
    if (shape.elements() == elements) add(shape);
  }
  for (const FusedKernel::Load& load : kernel.loads_) {
    for (const FusedKernel::Part& part : load.parts) add(part.from.box().sizes);
  }
  for (const std::int64_t period : found) {
    const bool fits = periods.empty() || period % periods.back() == 0;
    if (fits && elements % period == 0) periods.push_back(period);
  }
}

}  // namespace palimpsest
