#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

/// A letter, or `of_ellipsis` plus the position of an ellipsis axis, counted from its end.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label of_ellipsis = 128;

bool has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <class F>
Labels those(const Labels& labels, F wanted) {
  Labels result;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(result), wanted);
  return result;
}

/// An operand; axis i has the label `labels[i]`.
struct Term {
  Var x;
  Labels labels;

  std::int64_t size(Label label) const {
    return x
        .shape()[static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin())];
  }
  std::int64_t size(const Labels& some) const {
    std::int64_t product = 1;
    for (const Label label : some) product *= size(label);
    return product;
  }
};

class Equation {
 public:
  Equation(std::string_view text, std::span<const Var> operands, const Where& where)
      : text_(text), where_(where) {
    std::string plain;
    for (const char c : text) {
      if (c != ' ') plain += c;
    }
    const std::size_t arrow = plain.find("->");
    const std::string left = plain.substr(0, arrow);
    for (std::size_t begin = 0; begin != std::string::npos;) {
      const std::size_t end = left.find(',', begin);
      const std::string part = left.substr(begin, end == std::string::npos ? end : end - begin);
      if (terms.size() == operands.size())
        fail("has more operands than the " + count(operands) + one_each);
      const Var& x = operands[terms.size()];
      terms.push_back({x, parse(part, x.rank())});
      begin = end == std::string::npos ? end : end + 1;
    }
    if (terms.size() != operands.size()) {
      fail("has " + std::to_string(terms.size()) + " operands, not the " + count(operands) +
           one_each);
    }
    if (arrow == std::string::npos) {
      imply_result();
    } else {
      result = parse(plain.substr(arrow + 2), -1);
      check_result();
    }
    check_sizes();
  }

  std::vector<Term> terms;
  Labels result;

 private:
  static constexpr const char* one_each = "; name the axes of each tensor, separated by commas";

  static std::string count(std::span<const Var> operands) {
    return std::to_string(operands.size()) + " given";
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw ArgumentError("einsum", "the equation \"" + text_ + "\" " + reason, where_);
  }

  /// Parses the labels of one operand with `rank` axes, or of the result (rank −1).
  Labels parse(const std::string& part, int rank) {
    Labels labels;
    bool ellipsis = false;
    const auto letters =
        static_cast<int>(std::count_if(part.begin(), part.end(), [](char c) { return c != '.'; }));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const char c = part[i];
      if (('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z')) {
        labels.push_back(c);
      } else if (part.compare(i, 3, "...") == 0 && !ellipsis) {
        ellipsis = true;
        i += 2;
        const int axes = rank < 0 ? most_ellipsis_ : rank - letters;
        most_ellipsis_ = std::max(most_ellipsis_, axes);
        for (int axis = axes; axis-- > 0;) labels.push_back(of_ellipsis + axis);
      } else {
        fail("has an unexpected '" + std::string(1, c) + "'; axes are letters or one ...");
      }
    }
    if (rank >= 0 && (ellipsis ? letters > rank : letters != rank)) {
      fail("has " + std::to_string(letters) + " letters for operand " +
           std::to_string(terms.size()) + " of " + std::to_string(rank) +
           " axes; give one letter per axis, or ... for the other axes");
    }
    return labels;
  }

  void imply_result() {
    std::array<int, of_ellipsis> seen{};
    for (const Term& term : terms) {
      for (const Label label : term.labels) {
        if (label < of_ellipsis) ++seen[static_cast<std::size_t>(label)];
      }
    }
    for (int axis = most_ellipsis_; axis-- > 0;) result.push_back(of_ellipsis + axis);
    for (Label label = 0; label < of_ellipsis; ++label) {
      if (seen[static_cast<std::size_t>(label)] == 1) result.push_back(label);
    }
  }

  void check_result() const {
    for (std::size_t i = 0; i < result.size(); ++i) {
      const Label label = result[i];
      if (label >= of_ellipsis) continue;
      const std::string name(1, static_cast<char>(label));
      if (has(Labels(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(i)), label)) {
        fail("has '" + name + "' twice in its result; name it once");
      }
      if (std::none_of(terms.begin(), terms.end(),
                       [&](const Term& term) { return has(term.labels, label); })) {
        fail("has '" + name +
             "' in its result but in no operand; name it in an operand, or leave it out");
      }
    }
  }

  void check_sizes() const {
    std::array<std::int64_t, of_ellipsis + max_rank> sizes;
    sizes.fill(-1);
    for (const Term& term : terms) {
      for (std::size_t i = 0; i < term.labels.size(); ++i) {
        const Label label = term.labels[i];
        const std::int64_t size = term.x.shape()[static_cast<int>(i)];
        std::int64_t& known = sizes[static_cast<std::size_t>(label)];
        const bool broadcasts = label >= of_ellipsis && (known == 1 || size == 1);
        if (known >= 0 && known != size && !broadcasts) {
          throw ShapeError(
              "einsum",
              "the equation \"" + text_ + "\" gives " +
                  (label < of_ellipsis ? "'" + std::string(1, static_cast<char>(label)) + "'"
                                       : std::string("an axis of its ellipsis")) +
                  " sizes " + std::to_string(known) + " and " + std::to_string(size) +
                  " in operands of shapes " + shapes() +
                  (label < of_ellipsis ? "; they must be equal" : "; they must be equal or 1"),
              where_);
        }
        if (known < 0 || known == 1) known = size;
      }
    }
  }

  std::string shapes() const {
    std::string text;
    for (const Term& term : terms) {
      text += (text.empty() ? "" : ", ") + to_string(term.x.shape());
    }
    return text;
  }

  std::string text_;
  Where where_;
  int most_ellipsis_ = 0;
};

/// Contracts one or two terms; each step is a recorded operation.
class Contraction {
 public:
  explicit Contraction(const Where& where) : where_(where) {}

  /// Permutes the axes to the order of `labels`.
  Term ordered(const Term& term, const Labels& labels) const {
    if (labels == term.labels) return term;
    Axes axes;
    for (const Label label : labels) {
      axes.push_back(static_cast<int>(std::find(term.labels.begin(), term.labels.end(), label) -
                                      term.labels.begin()));
    }
    return {permute(term.x, axes, where_), labels};
  }

  /// Sums over every label that is not `kept`.
  template <class F>
  Term summed(const Term& term, F kept) const {
    Axes axes;
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      if (!kept(term.labels[i])) axes.push_back(static_cast<int>(i));
    }
    if (axes.empty()) return term;
    return {sum(term.x, axes, false, where_), those(term.labels, kept)};
  }

  /// Replaces repeated labels by one: takes the diagonal of their axes.
  Term diagonal(Term term) const {
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      const auto begin = term.labels.begin() + static_cast<std::ptrdiff_t>(i);
      const auto again = std::find(begin + 1, term.labels.end(), *begin);
      if (again == term.labels.end()) continue;
      const auto second = static_cast<int>(again - term.labels.begin());
      Axes axes;
      Labels rest;
      Shape flat;
      for (int axis = 0; axis < term.x.rank(); ++axis) {
        if (axis == static_cast<int>(i) || axis == second) continue;
        axes.push_back(axis);
        rest.push_back(term.labels[static_cast<std::size_t>(axis)]);
        flat.push_back(term.x.shape()[axis]);
      }
      axes.push_back(static_cast<int>(i));
      axes.push_back(second);
      const std::int64_t n = term.x.shape()[second];
      flat.push_back(n * n);
      const Var square = reshape(permute(term.x, axes, where_), flat, where_);
      rest.push_back(*begin);
      // Diagonal elements are n + 1 apart.
      term = {slice(square, -1, {.step = n + 1}, where_), rest};
      i = static_cast<std::size_t>(-1);  // the labels have moved: start again
    }
    return term;
  }

  /// The product of two terms. Labels of only one of them that are not `wanted` are summed first.
  template <class F>
  Term product(Term a, Term b, F wanted) const {
    drop_broadcast(a, b);
    drop_broadcast(b, a);
    a = summed(a, [&](Label label) { return wanted(label) || has(b.labels, label); });
    b = summed(b, [&](Label label) { return wanted(label) || has(a.labels, label); });
    const auto in_both = [&](Label label) { return has(b.labels, label); };
    const Labels batch =
        those(a.labels, [&](Label label) { return in_both(label) && wanted(label); });
    const Labels inner =
        those(a.labels, [&](Label label) { return in_both(label) && !wanted(label); });
    const Labels left = those(a.labels, [&](Label label) { return !in_both(label); });
    const Labels right = those(b.labels, [&](Label label) { return !has(a.labels, label); });
    require_axes(std::ssize(batch) + std::ssize(left) + std::ssize(right), "einsum", where_);
    Shape shape;
    for (const Label label : batch + left) shape.push_back(a.size(label));
    for (const Label label : right) shape.push_back(b.size(label));
    if (inner.empty() && (left.empty() || right.empty())) {
      return {scaled(ordered(a, batch + left), ordered(b, batch + right)), batch + left + right};
    }

    const std::int64_t batches = a.size(batch);
    const bool transpose_a = a.labels == batch + inner + left && !inner.empty();
    const bool transpose_b = b.labels == batch + right + inner && !right.empty();
    if (!transpose_a) a = ordered(a, batch + left + inner);
    if (!transpose_b) b = ordered(b, batch + inner + right);
    const auto matrices = [&](const Term& term, const Labels& rows, const Labels& columns) {
      return reshape(term.x, Shape{batches, term.size(rows), term.size(columns)}, where_);
    };
    const Var y = matmul(transpose_a ? matrices(a, inner, left) : matrices(a, left, inner),
                         transpose_b ? matrices(b, right, inner) : matrices(b, inner, right),
                         {transpose_a, transpose_b}, where_);
    return {reshape(y, shape, where_), batch + left + right};
  }

 private:
  /// Elementwise product, if the leading axes of one term are all axes of the other.
  Var scaled(const Term& a, const Term& b) const {
    const bool longer_a = a.labels.size() >= b.labels.size();
    const Term& longer = longer_a ? a : b;
    Shape shape = (longer_a ? b : a).x.shape();
    while (shape.rank() < longer.x.rank()) shape.push_back(1);
    const Var padded = reshape((longer_a ? b : a).x, shape, where_);
    return binary<functions::Multiply>(longer_a ? a.x : padded, longer_a ? padded : b.x, where_);
  }

  /// Removes axes of size 1 from a that broadcast against b.
  void drop_broadcast(Term& a, const Term& b) const {
    Labels rest;
    Shape shape;
    for (const Label label : a.labels) {
      if (has(b.labels, label) && a.size(label) != b.size(label) && a.size(label) == 1) continue;
      rest.push_back(label);
      shape.push_back(a.size(label));
    }
    a = {reshape(a.x, shape, where_), rest};
  }

  Where where_;
};

}  // namespace

Var einsum(std::string_view equation, std::span<const Var> operands, Where where) {
  common_tape(operands, "einsum", where);
  Equation parsed(equation, operands, where);
  const Contraction contraction(where);
  for (Term& term : parsed.terms) term = contraction.diagonal(term);
  Term total = parsed.terms[0];
  for (std::size_t i = 1; i < parsed.terms.size(); ++i) {
    total = contraction.product(total, parsed.terms[i], [&](Label label) {
      return has(parsed.result, label) ||
             std::any_of(parsed.terms.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         parsed.terms.end(),
                         [&](const Term& later) { return has(later.labels, label); });
    });
  }
  total = contraction.summed(total, [&](Label label) { return has(parsed.result, label); });
  return contraction.ordered(total, parsed.result).x;
}

Var einsum(std::string_view equation, std::initializer_list<Var> operands, Where where) {
  return einsum(equation, std::span<const Var>(operands.begin(), operands.size()), where);
}

}  // namespace palimpsest
