#include "strategy/compile/native/stage_source.h"

#include <algorithm>
#include <string>
#include <vector>

#include "strategy/compile/native/copied_load.h"
#include "strategy/compile/native/formulas.h"
#include "strategy/compile/native/source_text.h"

namespace palimpsest {
namespace {

using ValueKind = GroupParts::Value::Kind;

/// Long ranges, divided so that most of each begins at a multiple of `line` elements, which fill a
/// cache line. Vectors that lie in two lines take longer to store. `begin` is the element with
/// which the first range begins.
std::vector<ElementRange> in_lines(std::vector<ElementRange> ranges, std::int64_t begin,
                                   std::int64_t line) {
  constexpr std::int64_t shortest_in_lines = 16;
  std::vector<ElementRange> made;
  for (ElementRange& range : ranges) {
    const std::int64_t elements = range.elements();
    const std::int64_t before = (line - begin % line) % line;
    if (range.is_repeated()) {
      const bool begins_alike = elements / range.count % line == 0;
      if (begins_alike) range.body = in_lines(std::move(range.body), begin, line);
    } else if (before > 0 && elements - before >= shortest_in_lines * line) {
      made.push_back(take_front(range, before));
    }
    made.push_back(std::move(range));
    begin += elements;
  }
  return made;
}

}  // namespace

StageSource::StageSource(const GroupParts& parts, const Stage& stage, std::size_t number,
                         const std::vector<bool>& buffered)
    : parts_(parts), stage_(stage), number_(number), buffered_(buffered) {
  collect();
}

/// Finds what the stage reads and writes.
void StageSource::collect() {
  std::vector<bool> known(parts_.values.size());
  for (const std::uint32_t index : stage_.operations) {
    const GroupParts::Operation& operation = parts_.operations[index];
    for (const std::uint32_t input : operation.inputs) need(input, known);
    known[operation.output] = true;
    const GroupParts::Value& made = parts_.values[operation.output];
    if (made.kind == ValueKind::output) need({Parameter::Kind::output, operation.output});
    if (buffered_[operation.output]) need({Parameter::Kind::buffer, operation.output});
  }
}

void StageSource::need(std::uint32_t slot, std::vector<bool>& known) {
  const GroupParts::Value& value = parts_.values[slot];
  if (value.kind == ValueKind::spread) return need(value.index, known);
  if (known[slot]) return;
  known[slot] = true;
  switch (value.kind) {
    case ValueKind::number:
    case ValueKind::repeated:
      return need({Parameter::Kind::scalar, slot});
    case ValueKind::input:
      return need({Parameter::Kind::input, slot});
    case ValueKind::output:
      return need({Parameter::Kind::output, slot});
    case ValueKind::load:
      if (buffered_[slot]) return need({Parameter::Kind::buffer, slot});
      loads_.push_back(slot);
      return need({Parameter::Kind::load, slot});
    case ValueKind::made:
    case ValueKind::spread:
      return need({Parameter::Kind::buffer, slot});
  }
}

void StageSource::need(Parameter parameter) {
  const bool is_there = std::ranges::any_of(parameters_, [&](const Parameter& other) {
    return other.kind == parameter.kind && other.slot == parameter.slot;
  });
  if (!is_there) parameters_.push_back(parameter);
}

bool StageSource::write_calls(bool whole, std::string& to) {
  if (loads_.empty()) {
    const ElementRange all{parts_.elements};
    to += "  " + function_for(&all) + "(" + (whole ? text_of(parts_.elements) : "end - first");
    for (const Parameter& each : parameters_) {
      to += ", " + argument(each, nullptr, whole ? "0" : "first", "", whole);
    }
    to += ");\n";
    return true;
  }
  auto ranges = walk_of(parts_, loads_);
  if (!ranges) return false;
  row_ = whole ? 0 : whole_row(parts_, *ranges);
  if (row_ == 0) ranges = in_lines(std::move(*ranges), 0, 64 / parts_.widest_bytes());
  write_ranges(*ranges, "0", 0, whole, to);
  return true;
}

void StageSource::write_ranges(std::span<const ElementRange> ranges, const std::string& base,
                               int depth, bool whole, std::string& to) {
  std::int64_t before = 0;
  for (const ElementRange& range : ranges) {
    const std::string begin = before == 0 ? base : base + " + " + text_of(before);
    before += range.elements();
    if (!range.is_repeated()) {
      write_leaf(range, begin, whole, to);
      continue;
    }
    const std::string variable = "r" + text_of(depth);
    const std::int64_t length = range.elements() / range.count;
    const std::string at = moved(begin, variable, length);
    to += "  for (i64 " + variable + " = ";
    to += whole ? "0" : "from_row(first, " + begin + ", " + text_of(length) + ")";
    to += "; " + variable + " < " + text_of(range.count);
    if (!whole) to += " && " + at + " < end";
    to += "; ++" + variable + ") {\n";
    write_ranges(range.body, at, depth + 1, whole, to);
    to += "  }\n";
  }
}

void StageSource::write_leaf(const ElementRange& range, const std::string& base, bool whole,
                             std::string& to) {
  const std::string function = function_for(&range);
  if (whole || row_ > 0) {
    to += "  " + function + "(" + text_of(range.count);
    for (const Parameter& each : parameters_) to += ", " + argument(each, &range, base, "", whole);
    to += ");\n";
    return;
  }
  to += "  {\n    const i64 base = " + base + ";\n    const i64 skip = largest(first - base, 0);\n";
  to += "    const i64 count = smallest(end - base, " + text_of(range.count) + ") - skip;\n";
  to += "    if (count > 0) " + function + "(count";
  for (const Parameter& each : parameters_) {
    to += ", " + argument(each, &range, "base + skip", "skip", whole);
  }
  to += ");\n  }\n";
}

/// The argument for a parameter in a call that begins with element `begin`; `skipped` elements of
/// the range come before it.
std::string StageSource::argument(const Parameter& parameter, const ElementRange* range,
                                  const std::string& begin, const std::string& skipped,
                                  bool whole) const {
  const GroupParts::Value& value = parts_.values[parameter.slot];
  std::string name = GroupParts::name(parameter.slot);
  switch (parameter.kind) {
    case Parameter::Kind::scalar:
      return name;
    case Parameter::Kind::input:
      return input_address(value.index, value.dtype) + " + " + text_of(value.offset) + " + " +
             begin;
    case Parameter::Kind::output:
      return output_address(value.index, value.dtype) + " + " + begin;
    case Parameter::Kind::buffer:
      return "t" + name + " + " + begin + (whole ? "" : " - first");
    case Parameter::Kind::load:
      return load_argument(parameter.slot, *range, skipped);
  }
  return {};
}

std::string StageSource::load_argument(std::uint32_t slot, const ElementRange& range,
                                       const std::string& skipped) const {
  const auto load = static_cast<std::size_t>(std::ranges::find(loads_, slot) - loads_.begin());
  const ElementRange::Access& access = range.accesses[load];
  const std::string text = access_address(parts_, slot, access);
  return skipped.empty() ? text : moved(text, skipped, access.step);
}

/// The name of the function whose loads have the steps of `range`.
std::string StageSource::function_for(const ElementRange* range) {
  std::vector<std::int64_t> steps;
  for (std::size_t load = 0; load < loads_.size(); ++load) {
    steps.push_back(range->accesses[load].step);
  }
  const auto known = std::ranges::find(variants_, steps);
  std::string name =
      "@_" + text_of(static_cast<std::int64_t>(number_)) + "_" + text_of(known - variants_.begin());
  if (known == variants_.end()) {
    const Text made = text(steps, true);
    functions_ +=
        (parts_.is_small() || row_ > 0 ? "static inline INLINED void " : "static inline void ") +
        name;
    functions_ += "(i64 n" + made.header + ") {\n" + made.before +
                  (row_ > 0 ? "  INDEPENDENT_ROW" : "  INDEPENDENT") +
                  " for (i64 i = 0; i < n; ++i) {\n" + made.loop + "  }\n}\n";
    variants_.push_back(steps);
  }
  return name;
}

void StageSource::write_sums(std::span<const Sum> sums, std::int64_t strip, std::int64_t width,
                             std::string& to) {
  const Text made = text({}, false);
  const std::string name = "@_" + text_of(static_cast<std::int64_t>(number_)) + "_";
  std::string passed;
  std::string arguments;
  for (const Parameter& each : parameters_) {
    if (each.kind == Parameter::Kind::buffer) continue;
    if (each.kind == Parameter::Kind::input) passed += "a";
    if (each.kind == Parameter::Kind::output) passed += "o";
    passed += GroupParts::name(each.slot);
    passed += ", ";
    arguments += argument(each, nullptr, "first", "", false);
    arguments += ", ";
  }
  struct Names {
    std::string i;  // number of the sum
    std::string type;
    std::string value;
    std::string state;
  };
  std::vector<Names> named;
  for (const Sum& sum : sums) {
    named.push_back({std::to_string(named.size()),
                     std::string(c_type(parts_.values[sum.slot].dtype)), GroupParts::name(sum.slot),
                     sum.state});
  }
  const auto of_each = [&](const auto& text_of_sum, const char* between) {
    std::string all;
    for (const Names& sum : named) {
      if (!all.empty()) all += between;
      all += text_of_sum(sum);
    }
    return all;
  };

  functions_ += "static inline INLINED void " + name + "at(i64 i" + made.header + ", ";
  functions_ += of_each([](const Names& sum) { return sum.type + "* r" + sum.i; }, ", ");
  functions_ += ") {\n" + made.loop;
  functions_ +=
      of_each([](const Names& sum) { return "    *r" + sum.i + " = " + sum.value + ";\n"; }, "");
  functions_ += "}\nstatic void " + name + "sums(" + made.header.substr(2) + ", ";
  functions_ += of_each([](const Names& sum) { return sum.type + "* s" + sum.i; }, ", ");
  functions_ +=
      ") {\n  for (i64 i = 0; i < " + text_of(strip) + "; i += " + text_of(4 * width) + ") {\n";
  functions_ += "    INDEPENDENT for (i64 k = 0; k < " + text_of(width) + "; ++k) {\n";
  functions_ += of_each(
      [](const Names& sum) {
        const auto& i = sum.i;
        return "      " + sum.type + " a" + i + ", b" + i + ", c" + i + ", d" + i + ";\n";
      },
      "");
  for (const char row : {'a', 'b', 'c', 'd'}) {
    functions_ += "      " + name + "at(i + k + " + text_of(width * (row - 'a')) + ", " + passed;
    functions_ += of_each([&](const Names& sum) { return std::string("&") + row + sum.i; }, ", ");
    functions_ += ");\n";
  }
  functions_ += of_each(
      [](const Names& sum) {
        const auto& i = sum.i;
        return "      s" + i + "[k] = s" + i + "[k] + ((a" + i + " + b" + i + ") + (c" + i +
               " + d" + i + "));\n";
      },
      "");
  functions_ += "    }\n  }\n}\n";

  to += "    " + name + "sums(" + arguments;
  to += of_each([](const Names& sum) { return sum.state + ".sums"; }, ", ");
  to += ");\n";
  to += of_each(
      [&](const Names& sum) {
        return "    " + sum.state + ".rows += " + text_of(strip / width) + ";\n    if (" +
               sum.state + ".rows == 64) join_" + sum.type + "(&" + sum.state + ");\n";
      },
      "");
}

bool StageSource::is_made_here(std::uint32_t slot) const {
  return std::ranges::any_of(stage_.operations, [&](std::uint32_t index) {
    return parts_.operations[index].output == slot;
  });
}

StageSource::Text StageSource::text(const std::vector<std::int64_t>& steps,
                                    bool stores_buffers) const {
  Text made;
  auto& [header, before, loop] = made;
  for (const Parameter& each : parameters_) {
    const bool is_made = is_made_here(each.slot);
    if (each.kind == Parameter::Kind::buffer && is_made && !stores_buffers) continue;
    const std::string type(c_type(parts_.values[each.slot].dtype));
    const std::string name = GroupParts::name(each.slot);
    const std::string read = "const " + type + " " + name + " = ";
    switch (each.kind) {
      case Parameter::Kind::scalar:
        header += ", " + type + " " + name;
        break;
      case Parameter::Kind::input:
        header += ", const " + type + "* a" + name;
        loop += "    " + read + "a" + name + "[i];\n";
        break;
      case Parameter::Kind::output:
        header += ", " + type + "* o" + name;
        if (!is_made) loop += "    " + read + "o" + name + "[i];\n";
        break;
      case Parameter::Kind::buffer:
        header += ", " + type + "* b" + name;
        if (!is_made) loop += "    " + read + "b" + name + "[i];\n";
        break;
      case Parameter::Kind::load: {
        header += ", const " + type + "* l" + name;
        const auto load = std::ranges::find(loads_, each.slot) - loads_.begin();
        const std::int64_t step = steps[static_cast<std::size_t>(load)];
        if (step == 0) {
          before += "  " + read + "*l" + name + ";\n";
        } else if (step == 1) {
          loop += "    " + read + "l" + name + "[i];\n";
        } else {
          loop += "    " + read + "l" + name + "[i * " + text_of(step) + "];\n";
        }
        break;
      }
    }
  }
  for (const std::uint32_t index : stage_.operations) {
    const GroupParts::Operation& operation = parts_.operations[index];
    const GroupParts::Value& made = parts_.values[operation.output];
    const std::string name = GroupParts::name(operation.output);
    loop += "    const " + std::string(c_type(made.dtype)) + " " + name + " = " +
            operation.formula + ";\n";
    if (made.kind == ValueKind::output) loop += "    o" + name + "[i] = " + name + ";\n";
    if (buffered_[operation.output] && stores_buffers) {
      loop += "    b" + name + "[i] = " + name + ";\n";
    }
  }
  return made;
}

}  // namespace palimpsest
