#include <algorithm>

#include "autodiff/operations/attributes.h"
#include "autodiff/operations/matrices.h"
#include "strategy/export/emitters.h"

/// Factorizations and solutions of small systems, as plain loops.
namespace palimpsest {
namespace {

/// Gaussian elimination with partial pivoting: of an n×n matrix, and of a right-hand side with q
/// columns.
std::string elimination_helper(DType dtype) {
  return filled(
      R"(/* Eliminates below the diagonal of m, also in x. Returns the sign of the row exchanges, or 0 if m
 * is singular. */
@@FUNCTION int @eliminate_$name($T *m, $T *x, long n, long q) {
  int sign = 1;
  for (long k = 0; k < n; ++k) {
    long pivot = k;
    for (long i = k + 1; i < n; ++i) {
      if ($abs(m[i * n + k]) > $abs(m[pivot * n + k])) pivot = i;
    }
    if (m[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      sign = -sign;
      for (long j = 0; j < n; ++j) {
        const $T held = m[k * n + j];
        m[k * n + j] = m[pivot * n + j];
        m[pivot * n + j] = held;
      }
      for (long j = 0; j < q; ++j) {
        const $T held = x[k * q + j];
        x[k * q + j] = x[pivot * q + j];
        x[pivot * q + j] = held;
      }
    }
    for (long i = k + 1; i < n; ++i) {
      const $T factor = m[i * n + k] / m[k * n + k];
      for (long j = k + 1; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
      for (long j = 0; j < q; ++j) x[i * q + j] -= factor * x[k * q + j];
    }
  }
  return sign;
}
)",
      {{"name", std::string(name_of(dtype))},
       {"T", c_type(dtype)},
       {"abs", c_function("fabs", dtype)}});
}

std::string substitution_helper(DType dtype) {
  return filled(R"(/* Solves m x = x for the upper triangle m that elimination leaves. */
@@FUNCTION void @substitute_$name(const $T *m, $T *x, long n, long q) {
  for (long i = n - 1; i >= 0; --i) {
    for (long j = 0; j < q; ++j) {
      $T total = x[i * q + j];
      for (long k = i + 1; k < n; ++k) total -= m[i * n + k] * x[k * q + j];
      x[i * q + j] = total / m[i * n + i];
    }
  }
}
)",
                {{"name", std::string(name_of(dtype))}, {"T", c_type(dtype)}});
}

/// Strides between the matrices of an operand with the given shape, in a batch.
Strides matrix_strides(const Shape& shape, const Shape& batch) {
  const std::int64_t size = shape.size(-1) * shape.size(-2);
  Strides strides = broadcast_strides(batch_of(shape), batch);
  for (std::int64_t& stride : strides) stride *= size;
  return strides;
}

void emit_cholesky(const CNode& node, CBody& body) {
  const std::int64_t n = node.output_shape().size(-1);
  const std::int64_t count = batch_of(node.output_shape()).elements();
  body.may_fail();
  body.open("for (long matrix = 0; matrix < $count; ++matrix)", {{"count", count}});
  body.add(
      R"(
const $T *const a = x0 + matrix * $size;
$T *const l = y0 + matrix * $size;
for (long i = 0; i < $n; ++i) {
  for (long j = 0; j <= i; ++j) {
    $T total = a[i * $n + j];
    for (long k = 0; k < j; ++k) total -= l[i * $n + k] * l[j * $n + k];
    if (j < i) {
      l[i * $n + j] = total / l[j * $n + j];
    } else {
      if (!(total > 0)) return @@NOT_POSITIVE_DEFINITE;
      l[i * $n + i] = $sqrt(total);
    }
  }
  for (long j = i + 1; j < $n; ++j) l[i * $n + j] = 0;
}
)",
      {{"T", node.type()}, {"n", n}, {"size", n * n}, {"sqrt", c_function("sqrt", node.dtype())}});
  body.close();
}

void emit_triangular_solve(const CNode& node, CBody& body) {
  const TriangularSolveOptions& options = node.attributes.as<TriangularAttributes>().options;
  const Shape& shape = node.output_shape();
  const Shape batch = batch_of(shape);
  const std::int64_t n = node.input_shape().size(-1);
  const std::int64_t columns = shape.size(-1);
  const bool flips = options.transpose != options.right;
  const bool is_upper = options.upper != flips;
  const CLoops loops(batch,
                     {matrix_strides(node.input_shape(0), batch),
                      matrix_strides(node.input_shape(1), batch), matrix_strides(shape, batch)});
  body.may_fail();
  loops.open(body);
  body.add(R"(
const $T *const a = x0 + $a;
const $T *const from = x1 + $b;
$T *const x = y0 + $x;
for (long i = 0; i < $size; ++i) x[i] = from[i];
for (long i = 0; i < $n; ++i) {
  if (a[i * $n + i] == 0) return @@SINGULAR;
}
)",
           {{"T", node.type()},
            {"a", loops.offset(0)},
            {"b", loops.offset(1)},
            {"x", loops.offset(2)},
            {"size", columns * shape.size(-2)},
            {"n", n}});
  const auto unknown = [&](const char* row) {
    return filled(options.right ? "x[j * $columns + $row]" : "x[$row * $columns + j]",
                  {{"columns", columns}, {"row", row}});
  };
  body.open(is_upper ? "for (long i = $last; i >= 0; --i)" : "for (long i = 0; i <= $last; ++i)",
            {{"last", n - 1}});
  body.open("for (long j = 0; j < $count; ++j)",
            {{"count", options.right ? shape.size(-2) : columns}});
  body.add("$T total = $x;", {{"T", node.type()}, {"x", unknown("i")}});
  body.add(is_upper ? "for (long k = i + 1; k < $n; ++k) total -= $a * $x;"
                    : "for (long k = 0; k < i; ++k) total -= $a * $x;",
           {{"n", n},
            {"a", filled(flips ? "a[k * $n + i]" : "a[i * $n + k]", {{"n", n}})},
            {"x", unknown("k")}});
  body.add("$x = total / a[i * $n + i];", {{"x", unknown("i")}, {"n", n}});
  body.close();
  body.close();
  loops.close(body);
}

/// A copy of the matrix, which is eliminated.
Bytes factor_workspace(const NodeView& node, int) {
  const ValueType a = node.input(0);
  const std::int64_t n = a.shape.size(-1);
  return n * n * size_of(a.dtype);
}

/// Copies a matrix at offset `at`, transposed if necessary, to the workspace `m`.
void add_factor(const CNode& node, CBody& body, const std::string& at, bool transpose) {
  const std::int64_t n = node.input_shape().size(-1);
  body.use(elimination_helper(node.dtype()));
  body.add(R"(
const $T *const a = x0 + $at;
$T *const m = ($T *)w;
for (long i = 0; i < $n; ++i) {
  for (long j = 0; j < $n; ++j) m[i * $n + j] = $element;
}
)",
           {{"T", node.type()},
            {"at", at},
            {"n", n},
            {"element", filled(transpose ? "a[j * $n + i]" : "a[i * $n + j]", {{"n", n}})}});
}

/// Solves in place of x, with the matrix in `m`.
void add_solution(const CNode& node, CBody& body, std::int64_t n, std::int64_t columns) {
  body.use(substitution_helper(node.dtype()));
  body.may_fail();
  body.add(R"(
if (@eliminate_$name(m, x, $n, $columns) == 0) return @@SINGULAR;
@substitute_$name(m, x, $n, $columns);
)",
           {{"name", std::string(name_of(node.dtype()))}, {"n", n}, {"columns", columns}});
}

void emit_solve(const CNode& node, CBody& body) {
  const Shape& shape = node.output_shape();
  const Shape batch = batch_of(shape);
  const std::int64_t n = shape.size(-2);
  const std::int64_t columns = shape.size(-1);
  const CLoops loops(batch,
                     {matrix_strides(node.input_shape(0), batch),
                      matrix_strides(node.input_shape(1), batch), matrix_strides(shape, batch)});
  loops.open(body);
  add_factor(node, body, loops.offset(0), node.attributes.as<SolveAttributes>().transpose);
  body.add(
      "$T *const x = y0 + $x;\nfor (long i = 0; i < $size; ++i) x[i] = x1[$b + i];",
      {{"T", node.type()}, {"x", loops.offset(2)}, {"size", n * columns}, {"b", loops.offset(1)}});
  add_solution(node, body, n, columns);
  loops.close(body);
}

void emit_inverse(const CNode& node, CBody& body) {
  const Shape& shape = node.output_shape();
  const std::int64_t n = shape.size(-1);
  body.open("for (long matrix = 0; matrix < $n; ++matrix)", {{"n", batch_of(shape).elements()}});
  add_factor(node, body, filled("matrix * $size", {{"size", n * n}}),
             node.attributes.as<SolveAttributes>().transpose);
  body.add("$T *const x = y0 + matrix * $size;\nfor (long i = 0; i < $size; ++i) x[i] = 0;",
           {{"T", node.type()}, {"size", n * n}});
  body.add("for (long i = 0; i < $n; ++i) x[i * $n + i] = 1;", {{"n", n}});
  add_solution(node, body, n, n);
  body.close();
}

/// `result` writes what is made of `sign`, the elements of the diagonal and the matrix's number.
void emit_determinants(const CNode& node, CBody& body, std::string_view before,
                       std::string_view each, std::string_view result) {
  const std::int64_t n = node.input_shape().size(-1);
  body.open("for (long matrix = 0; matrix < $n; ++matrix)",
            {{"n", batch_of(node.input_shape()).elements()}});
  add_factor(node, body, filled("matrix * $size", {{"size", n * n}}), false);
  body.add("int sign = @eliminate_$name(m, m, $n, 0);",
           {{"name", std::string(name_of(node.dtype()))}, {"n", n}});
  body.add(before, {{"T", node.type()}});
  body.open("for (long i = 0; sign != 0 && i < $n; ++i)", {{"n", n}});
  body.add(each, {{"diagonal", filled("m[i * $n + i]", {{"n", n}})},
                  {"log", c_function("log", node.dtype())},
                  {"abs", c_function("fabs", node.dtype())}});
  body.close();
  body.add(result, {{"T", node.type()}});
  body.close();
}

constexpr std::string_view sign_and_log = R"(if ($diagonal < 0) sign = -sign;
total += $log($abs($diagonal));)";

}  // namespace

void add_factorization_emitters(CEmitters& emitters) {
  emitters["cholesky"] = {emit_cholesky};
  emitters["triangular_solve"] = {emit_triangular_solve};
  emitters["solve"] = {emit_solve, factor_workspace};
  emitters["inverse"] = {emit_inverse, factor_workspace};
  emitters["det"] = {[](const CNode& node, CBody& body) {
                       emit_determinants(node, body, "$T product = ($T)sign;",
                                         "product *= $diagonal;", "y0[matrix] = product;");
                     },
                     factor_workspace};
  emitters["logdet"] = {[](const CNode& node, CBody& body) {
                          body.may_fail();
                          emit_determinants(node, body, "$T total = 0;", sign_and_log,
                                            "if (sign <= 0) return @@NOT_POSITIVE_DEFINITE;\n"
                                            "y0[matrix] = total;");
                        },
                        factor_workspace};
  emitters["slogdet"] = {[](const CNode& node, CBody& body) {
                           emit_determinants(node, body, "$T total = sign != 0 ? 0 : -INFINITY;",
                                             sign_and_log,
                                             "y0[matrix] = ($T)sign;\ny1[matrix] = total;");
                         },
                         factor_workspace};
}

}  // namespace palimpsest
