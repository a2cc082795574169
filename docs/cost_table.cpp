#include "docs/cost_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "autodiff/gradient.h"
#include "autodiff/tape.h"
#include "docs/cost_examples.h"

namespace palimpsest {
namespace {

using Sizes = std::map<std::string, double>;

/// An operand of an example: a name, the factors and names of its sizes, and its dtype.
struct OperandText {
  std::string name;
  std::vector<std::pair<std::int64_t, std::string>> sizes;
  DType dtype = DType::f32;
};

std::vector<OperandText> operands_in(std::string_view text) {
  std::vector<OperandText> operands;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, ')');) {
    OperandText& operand = operands.emplace_back();
    const std::size_t open = part.find('(');
    std::string head = part.substr(0, open);
    if (operands.size() > 1) {  // the dtype of the one before, and a comma
      const std::size_t comma = head.find(',');
      const std::string dtype = head.substr(0, comma);
      DType& of_last = operands[operands.size() - 2].dtype;
      if (dtype == " i64") of_last = DType::i64;
      if (dtype == " bool") of_last = DType::boolean;
      head = comma == head.npos ? "" : head.substr(comma + 1);
    }
    head.erase(std::remove(head.begin(), head.end(), ' '), head.end());
    operand.name = head;
    if (open == part.npos) {
      operands.pop_back();
      break;
    }
    std::istringstream sizes(part.substr(open + 1));
    for (std::string size; std::getline(sizes, size, ',');) {
      std::int64_t factor = 0;
      std::string name;
      for (const char c : size) {
        if (c >= '0' && c <= '9') factor = 10 * factor + (c - '0');
        if (c >= 'a' && c <= 'z') name += c;
      }
      operand.sizes.emplace_back(name.empty() || factor > 0 ? factor : 1, name);
    }
  }
  return operands;
}

/// The costs of an example that is recorded with some sizes.
struct Recorded {
  double work = 0;           ///< floating-point operations
  double moved = 0;          ///< bytes read and written
  double work_backward = 0;  ///< of the nodes that the gradients need
  double moved_backward = 0;
  double between = 0;  ///< bytes of other values that the backward part reads
  bool reads_results = false;
  bool is_differentiable = false;
  std::vector<std::string> operands;  ///< that the backward part reads
  std::set<std::string_view> operations;
};

/// The nodes from `first` on that `values` need.
std::vector<bool> needed(const Tape& tape, std::span<const Var> values, NodeId first) {
  std::vector<bool> is_needed(tape.node_count());
  for (const Var& value : values) is_needed[value.node()] = true;
  for (NodeId node = tape.node_count(); node-- > first;) {
    if (!is_needed[node]) continue;
    for (const ValueId input : tape.inputs(node)) is_needed[tape.producer(input)] = true;
  }
  return is_needed;
}

/// `twice` also notes the operations of second derivatives.
Recorded record(const CostExample& example, const std::vector<OperandText>& texts,
                const Sizes& sizes, bool twice = false) {
  Tape tape;
  std::vector<Var> operands, differentiable;
  for (const OperandText& text : texts) {
    std::vector<std::int64_t> shape;
    for (const auto& [factor, name] : text.sizes) {
      shape.push_back(name.empty() ? factor : factor * static_cast<std::int64_t>(sizes.at(name)));
    }
    const Shape of_operand{std::span<const std::int64_t>(shape)};
    operands.push_back(tape.placeholder({of_operand, text.dtype}, Where::current()));
    if (text.dtype == DType::f32) differentiable.push_back(operands.back());
  }
  const NodeId begin = tape.node_count();
  const std::vector<Var> results = example.record(CostOperands(tape, operands, sizes)).values;
  Recorded made;
  const auto add = [&](NodeId node, double& work, double& moved) {
    const Operation& operation = tape.operation(node);
    made.operations.insert(operation.name);
    if (operation.leaf || operation.view) return;
    const Cost cost = cost_of(NodeView(tape.nodes(), node));
    work += cost.flops;
    moved += cost.bytes;
  };
  const NodeId backward = tape.node_count();
  for (NodeId node = begin; node < backward; ++node) add(node, made.work, made.moved);
  std::vector<Var> ys;
  for (const Var& result : results) {
    if (is_floating(result.dtype())) ys.push_back(result);
  }
  if (ys.empty() || differentiable.empty()) return made;
  const ValueId end_of_forward = tape.value_count();
  std::vector<Var> seeds;
  for (const Var& y : ys) seeds.push_back(tape.placeholder(y.type(), Where::current()));
  const NodeId first_adjoint = tape.node_count();
  const std::vector<Var> gradients = vjp(ys, differentiable, seeds);
  const std::vector<bool> is_needed = needed(tape, gradients, backward);
  std::set<ValueId> read;
  for (NodeId node = backward; node < tape.node_count(); ++node) {
    if (!is_needed[node]) continue;
    made.is_differentiable |= node < first_adjoint;  // a seed
    add(node, made.work_backward, made.moved_backward);
    for (ValueId input : tape.inputs(node)) {
      while (input < end_of_forward && tape.operation(tape.producer(input)).view) {
        input = tape.inputs(tape.producer(input))[0];
      }
      if (input < end_of_forward) read.insert(input);
    }
  }
  // Derivatives of the derivatives may record operations of their own.
  std::vector<Var> again = differentiable;
  again.insert(again.end(), seeds.begin(), seeds.end());
  for (const Var& gradient : gradients) {
    if (!twice || !made.is_differentiable || gradient.node() < backward) continue;
    const NodeId first = tape.node_count();
    (void)palimpsest::gradient(gradient, again);
    for (NodeId node = first; node < tape.node_count(); ++node) {
      made.operations.insert(tape.operation(node).name);
    }
  }
  for (const ValueId value : read) {
    if (tape.producer(value) < begin) {
      made.operands.push_back(texts[value].name);
    } else if (std::ranges::any_of(results, [&](const Var& y) { return y.id() == value; })) {
      made.reads_results = true;
    } else if (!tape.is_leaf(tape.producer(value))) {
      made.between += static_cast<double>(tape.bytes(value));
    }
  }
  return made;
}

/// c·Π sizeᵉ·Π log₂ size.
struct Term {
  double factor;
  std::map<std::string, int> exponents;
  std::set<std::string> logarithms;

  double at(const Sizes& sizes) const {
    double value = factor;
    for (const auto& [name, exponent] : exponents) value *= std::pow(sizes.at(name), exponent);
    for (const std::string& name : logarithms) value *= std::log2(sizes.at(name));
    return value;
  }

  std::string text() const {
    std::string product;
    char number[32];
    const double rounded = std::abs(factor) >= 9.5 ? std::round(factor) : factor;
    std::snprintf(number, sizeof number, "%.2g", rounded);
    if (std::abs(rounded) >= 100) std::snprintf(number, sizeof number, "%.0f", rounded);
    if (const double sixths = 6 * factor; std::abs(sixths) < 57 && sixths == std::round(sixths)) {
      const char* const fractions[] = {"", "⅙", "⅓", "½", "⅔", "⅚"};
      const int whole = static_cast<int>(std::abs(sixths)) / 6;
      const char* const fraction = fractions[static_cast<int>(std::abs(sixths)) % 6];
      const bool has_whole = whole > 0 || *fraction == 0;
      std::snprintf(number, sizeof number, "%s%s%s", factor < 0 ? "-" : "",
                    has_whole ? std::to_string(whole).c_str() : "", fraction);
    }
    if (exponents.empty() && logarithms.empty()) return number;
    if (std::string_view(number) != "1") product = number;
    const auto times = [&](const std::string& what) {
      product += product.empty() ? what : "·" + what;
    };
    const char* const powers[] = {"", "", "²", "³", "⁴", "⁵", "⁶"};
    for (const auto& [name, exponent] : exponents) {
      if (exponent < 0) return "";
      times(name + powers[std::min(exponent, 6)]);
    }
    for (const std::string& name : logarithms) times("log₂ " + name);
    return product;
  }
};

/// The term that grows like f around `sizes`, if there is one.
template <class F>
std::optional<Term> leading_term(const Sizes& sizes, F f) {
  Term term{1, {}, {}};
  const double here = f(sizes);
  for (const auto& [name, size] : sizes) {
    Sizes doubled = sizes;
    doubled[name] = 2 * size;
    const auto close = [](double exponent) {
      return std::abs(exponent - std::round(exponent)) < 0.07;
    };
    const double growth = f(doubled) / here;
    double exponent = std::log2(growth);
    if (!close(exponent)) {
      exponent = std::log2(growth * std::log2(size) / std::log2(2 * size));
      if (!close(exponent)) return {};
      term.logarithms.insert(name);
    }
    const int whole = static_cast<int>(std::round(exponent));
    if (whole != 0) term.exponents[name] = whole;
  }
  term.factor = here / term.at(sizes);
  // Costs count whole operations, or fractions as of n³/3.
  constexpr std::pair<int, double> roundings[] = {{6, 1e-3}, {1, 0.03}, {6, 0.03}};
  for (const auto& [parts, error] : roundings) {
    const double whole = std::round(parts * term.factor);
    if (std::abs(parts * term.factor - whole) >= error * std::abs(whole)) continue;
    term.factor = whole / parts;
    break;
  }
  return term;
}

/// f as a sum of at most three terms; empty if it is none.
template <class F>
std::string sum_of_terms(const Sizes& sizes, F f) {
  const double all = f(sizes);
  if (all == 0) return "0";
  std::vector<Term> terms;
  const auto rest = [&](const Sizes& at) {
    double value = f(at);
    for (const Term& term : terms) value -= term.at(at);
    return value;
  };
  std::string text;
  while (terms.size() < 3 && std::abs(rest(sizes)) > 0.003 * all) {
    const std::optional<Term> term = leading_term(sizes, rest);
    if (!term || term->text().empty()) break;
    const auto is_like = [&](const Term& other) { return other.exponents == term->exponents; };
    if (std::ranges::any_of(terms, is_like)) break;
    const std::string product = term->text();
    const bool is_negative = product.starts_with('-');
    if (!terms.empty()) text += is_negative ? " - " : " + ";
    text += terms.empty() || !is_negative ? product : product.substr(1);
    terms.push_back(*term);
  }
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

CostTable cost_table() {
  struct Row {
    std::string functions;
    std::string cells;
  };
  CostTable table;
  std::vector<Row> rows;  // functions with equal cells share one
  std::set<std::string_view> known;
  for (const CostExample& example : cost_examples()) {
    const std::string name(example.functions.substr(0, example.functions.find(' ')));
    const std::vector<OperandText> texts = operands_in(example.operands);
    Sizes sizes;
    const auto add_size = [&](const std::string& size) {
      if (!size.empty()) sizes.try_emplace(size, 65536);
    };
    for (const OperandText& text : texts) {
      for (const auto& [factor, size] : text.sizes) add_size(size);
    }
    std::istringstream given{std::string(example.sizes)};
    for (std::string size; given >> size;) sizes[size.substr(0, 1)] = std::stod(size.substr(2));
    const auto of = [&](double Recorded::* member) {
      return [&, member](const Sizes& at) { return record(example, texts, at).*member; };
    };
    Recorded made;
    try {
      made = record(example, texts, sizes, true);
    } catch (const std::exception& error) {
      table.problems.push_back(name + ": " + error.what());
      continue;
    }
    known.insert(made.operations.begin(), made.operations.end());
    const auto terms = [&](const char* what, double Recorded::* member) {
      const std::string text = sum_of_terms(sizes, of(member));
      if (text.empty()) table.problems.push_back(name + ": " + what + " is no sum of products");
      return text;
    };
    const auto work_or_bytes = [&](double Recorded::* of_work, double Recorded::* moved) {
      std::string count = terms("the work", of_work);
      if (count != "0") return count;
      const std::string bytes = terms("what is moved", moved);
      return bytes == "0" ? std::string("none") : "moves " + bytes + " bytes";
    };
    const std::string work = work_or_bytes(&Recorded::work, &Recorded::moved);
    std::string backward, reads;
    if (made.is_differentiable) {
      backward = work_or_bytes(&Recorded::work_backward, &Recorded::moved_backward);
      std::vector<std::string> values = made.operands;
      if (made.reads_results) values.emplace_back("the result");
      if (made.between > 0) {
        values.push_back(terms("what is kept", &Recorded::between) + " bytes of other values");
      }
      reads = values.empty() ? "nothing" : joined(values);
    }
    std::istringstream functions{std::string(example.functions)};
    std::string list;
    for (std::string function; functions >> function;) {
      list += (list.empty() ? "`" : ", `") + function + "`";
    }
    const std::string cells =
        std::string(example.operands) + " | " + work + " | " + backward + " | " + reads;
    const auto equal = std::ranges::find(rows, cells, &Row::cells);
    if (equal == rows.end()) {
      rows.push_back({list, cells});
    } else {
      equal->functions += ", " + list;
    }
  }
  for (const Row& row : rows) table.rows += "| " + row.functions + " | " + row.cells + " |\n";
  for (const Operation* operation : operations()) {
    if (operation->pointwise != nullptr || operation->leaf || known.contains(operation->name)) {
      continue;
    }
    table.problems.push_back("no example of costs records `" + std::string(operation->name) +
                             "`; add one to docs/cost_examples.cpp");
  }
  return table;
}

}  // namespace palimpsest
