#include "strategy/compile/native/source_text.h"

#include <cmath>
#include <cstdio>
#include <set>

#include "strategy/compile/native/formulas.h"

namespace palimpsest {

std::string element_literal(double number, DType dtype) {
  if (is_floating(dtype)) {
    const std::string type(c_type(dtype));
    if (std::isnan(number)) {
      return "(" + type + ")" + (std::signbit(number) ? "-" : "") + "__builtin_nan(\"\")";
    }
    if (std::isinf(number)) {
      return "(" + type + ")" + (number < 0 ? "-" : "") + "__builtin_inf()";
    }
    char text[64];
    std::snprintf(text, sizeof text, "%a", number);
    return "(" + type + ")" + text;
  }
  return visit(dtype, [&]<class T>(T) {
    const T value = convert_element<T>(number);
    if constexpr (std::is_integral_v<T>) {
      const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
      return "(" + std::string(c_type(dtype)) + ")" + std::to_string(bits) + "ull";
    } else {
      return std::string();
    }
  });
}

std::string moved(std::string base, const std::string& variable, std::int64_t move) {
  if (move == 0) return base;
  return base + (move < 0 ? " - " : " + ") + variable + " * " + text_of(std::abs(move));
}

std::string input_address(std::uint32_t index, DType dtype) {
  return "(const " + std::string(c_type(dtype)) + "*)in" + text_of(index);
}

std::string output_address(std::uint32_t index, DType dtype) {
  return "(" + std::string(c_type(dtype)) + "*)out" + text_of(index);
}

std::string load_addresses(const GroupParts& parts) {
  using Kind = GroupParts::Value::Kind;
  std::set<std::uint32_t> inputs;
  std::set<std::uint32_t> outputs;
  for (const GroupParts::Value& value : parts.values) {
    if (value.kind == Kind::input || value.kind == Kind::repeated) inputs.insert(value.index);
    if (value.kind == Kind::output) outputs.insert(value.index);
  }
  for (const GroupParts::Part& part : parts.part_list) {
    if (part.input != none) inputs.insert(part.input);
  }
  for (const GroupParts::Fold& fold : parts.folds) outputs.insert(fold.output);
  std::string text;
  for (const std::uint32_t input : inputs) {
    const std::string index = text_of(input);
    text += "  const char* const in" + index + " = in[" + index + "];\n";
  }
  for (const std::uint32_t output : outputs) {
    const std::string index = text_of(output);
    text += "  char* const out" + index + " = out[" + index + "];\n";
  }
  return text;
}

std::string access_address(const GroupParts& parts, std::uint32_t slot,
                           const ElementRange::Access& access) {
  const GroupParts::Part& part = parts.part_list[access.part];
  const DType dtype = parts.values[slot].dtype;
  const std::string type(c_type(dtype));
  if (part.number != none) {
    return "(const " + type + "*)(numbers + " + text_of(parts.values[part.number].index * 8) + ")";
  }
  if (part.input == none) {
    return "&(const " + type + "){" + element_literal(part.literal, dtype) + "}";
  }
  std::string text = input_address(part.input, dtype) + " + " + text_of(access.offset);
  const int depth = static_cast<int>(access.moves.size());
  for (int level = 0; level < depth; ++level) {
    text = moved(text, "r" + text_of(depth - 1 - level),
                 access.moves[static_cast<std::size_t>(level)]);
  }
  return text;
}

}  // namespace palimpsest
