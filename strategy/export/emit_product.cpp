#include "autodiff/operations/batched_product.h"
#include "strategy/export/emitters.h"

/// Matrix products. The terms of an element are added in order.
namespace palimpsest {
namespace {

/// Loops over batch axes. Appends their offsets in a, b and y.
void open_batch(CBody& body, std::span<const BatchAxis> axes, const char* letter, std::string& a,
                std::string& b, std::string& y) {
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::string index = letter + std::to_string(k);
    body.open("for (long $i = 0; $i < $n; ++$i)", {{"i", index}, {"n", axes[k].size}});
    const auto extend = [&](std::string& offset, std::int64_t stride) {
      if (stride != 0) offset = sum_of(offset, std::to_string(stride) + "*" + index);
    };
    extend(a, axes[k].a);
    extend(b, axes[k].b);
    extend(y, axes[k].c);
  }
}

void close_batch(CBody& body, std::span<const BatchAxis> axes) {
  for (std::size_t k = 0; k < axes.size(); ++k) body.close();
}

/// b is read along its rows if it is not transposed, and the row of y is made in one pass per term.
/// Otherwise each element is a dot product.
void emit_matmul(const CNode& node, CBody& body) {
  const auto& options = node.attributes.as<MatmulOptions>();
  const BatchedProduct all(node.input_shape(0), node.input_shape(1), node.output_shape(), options);
  const std::int64_t lda = node.input_shape(0).size(-1);
  const std::int64_t ldb = node.input_shape(1).size(-1);
  std::string a = "0";
  std::string b = "0";
  std::string y = "0";
  open_batch(body, all.outputs(), "o", a, b, y);
  body.add("$T *const y = y0 + $at;", {{"T", node.type()}, {"at", y}});
  body.add("for (long i = 0; i < $n; ++i) y[i] = 0;", {{"n", all.m * all.n}});
  open_batch(body, all.terms(), "s", a, b, y);
  body.add("const $T *const a = x0 + $a;\nconst $T *const b = x1 + $b;",
           {{"T", node.type()}, {"a", a}, {"b", b}});
  const std::string left =
      filled(options.transpose_a ? "a[k * $ld + i]" : "a[i * $ld + k]", {{"ld", lda}});
  body.open("for (long i = 0; i < $m; ++i)", {{"m", all.m}});
  if (options.transpose_b) {
    body.open("for (long j = 0; j < $n; ++j)", {{"n", all.n}});
    body.add(R"(
$T total = y[i * $n + j];
for (long k = 0; k < $k; ++k) total += $left * b[j * $ldb + k];
y[i * $n + j] = total;
)",
             {{"T", node.type()}, {"n", all.n}, {"k", all.k}, {"left", left}, {"ldb", ldb}});
    body.close();
  } else {
    body.open("for (long k = 0; k < $k; ++k)", {{"k", all.k}});
    body.add(R"(
const $T left = $left;
for (long j = 0; j < $n; ++j) y[i * $n + j] += left * b[k * $ldb + j];
)",
             {{"T", node.type()}, {"n", all.n}, {"left", left}, {"ldb", ldb}});
    body.close();
  }
  body.close();
  close_batch(body, all.terms());
  close_batch(body, all.outputs());
}

}  // namespace

void add_product_emitters(CEmitters& emitters) { emitters["matmul"] = {emit_matmul}; }

}  // namespace palimpsest
