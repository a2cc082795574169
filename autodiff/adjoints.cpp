#include "autodiff/adjoints.h"

#include <algorithm>
#include <utility>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/placed.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/scattered.h"
#include "autodiff/operations/shape.h"
#include "autodiff/recording_guards.h"

namespace palimpsest {
namespace {

/// Most rows to collect from products of (k, m) and (k, n). Up to this number, the stacked operands
/// take no more memory than the result; beyond 256 rows there is no further gain.
std::int64_t most_rows(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t enough = 256;
  return std::min(enough, m * n / std::max<std::int64_t>(m + n, 1));
}

}  // namespace

Adjoints::Adjoints(Tape& tape, ValueId begin, ValueId end)
    : tape_(tape),
      begin_(begin),
      first_own_(tape.value_count()),
      reached_(end - begin),
      first_readers_(end - begin, none),
      sums_(end - begin, none) {}

void Adjoints::note_reader(NodeId node, std::span<const ValueId> inputs) {
  for (const ValueId input : inputs) {
    if (!inside(input)) continue;
    NodeId& first = first_readers_[input - begin_];
    if (first == none) first = node;
  }
}

void Adjoints::leave(NodeId node) {
  if (slices_.empty() && products_.empty()) return;
  const std::size_t count = tape_.inputs(node).size();
  for (std::size_t i = 0; i < count; ++i) {
    const ValueId input = tape_.inputs(node)[i];  // the tape grows, so no span survives
    if (inside(input) && first_readers_[input - begin_] == node) sum(input);
  }
}

Var Adjoints::sum(ValueId value) {
  if (!inside(value)) return Var();
  if (const auto slices = slices_.find(value); slices != slices_.end()) {
    const Blame blame(tape_, slices->second[0].node());
    for (const Var& together : put_together(slices->second)) add_whole(value, together);
    slices_.erase(slices);
  }
  if (const auto products = products_.find(value); products != products_.end()) {
    add_together(value, products->second);
    products_.erase(products);
  }
  const ValueId sum = sums_[value - begin_];
  return sum == none ? Var() : Var(tape_, sum);
}

void Adjoints::add(ValueId value, const Var& contribution) {
  const bool is_own = contribution.id() >= first_own_ && !tape_.is_blocked(contribution.node());
  if (is_own && placed_among_zeros(contribution)) {
    slices_[value].push_back(contribution);
  } else {
    add_whole(value, contribution);
  }
}

void Adjoints::add_whole(ValueId value, const Var& contribution) {
  ValueId& sum = sums_[value - begin_];
  if (sum == none) {
    sum = contribution.id();
    return;
  }
  const Var before(tape_, sum);
  const Var scattered = add_scattered(before, contribution, first_own_);
  sum = (scattered.defined() ? scattered : palimpsest::add(before, contribution)).id();
}

void Adjoints::add_product(ValueId value, const Var& a, const Var& b) {
  Products& products = products_[value];
  const std::int64_t rows = a.shape()[0];
  const std::int64_t most = most_rows(a.shape()[1], b.shape()[1]);
  if (products.rows + rows > most) add_together(value, std::exchange(products, {}));
  if (products.a.empty()) products.first = b.node();
  products.a.push_back(a);
  products.b.push_back(b);
  products.rows += rows;
  if (rows >= most) add_together(value, std::exchange(products, {}));
}

void Adjoints::add_together(ValueId value, const Products& products) {
  if (products.a.empty()) return;
  const Blame blame(tape_, products.first);
  const auto stacked = [](const std::vector<Var>& parts) {
    return parts.size() == 1 ? parts[0] : concat(parts, 0);
  };
  add_whole(value, matmul_sum(stacked(products.a), stacked(products.b), {.transpose_a = true}, {}));
}

}  // namespace palimpsest
