// Examples of docs/reference/tensors.md.
#include <palimpsest/autodiff/eigen.h>

#include <algorithm>

#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(Tensor) {
  const Tensor x = Tensor::matrix({{1, 2}, {3, 4}});
  print(x.shape(), x.dtype(), x.elements(), x.bytes());      // → (2, 2) f32 4 16
  print(x.at(2), x.reshape({4}), x.to(DType::i32).dtype());  // → 3 [1, 2, 3, 4] i32
  // Elements are changed through a span. A copy shares the storage, a clone does not.
  const Tensor copy = x, clone = x.clone();
  x.data<float>()[0] = 10;
  print(copy.at(0), clone.at(0), x.defined());  // → 10 1 true
}

EXAMPLE(Tensor::zeros, Tensor::ones, Tensor::full, Tensor::arange, Tensor::scalar) {
  print(Tensor::zeros({2}), Tensor::ones({2}), Tensor::full({2}, 7));  // → [0, 0] [1, 1] [7, 7]
  print(Tensor::arange(3), Tensor::scalar(5).item());                  // → [0, 1, 2] 5
}

EXAMPLE(Tensor::from, Tensor::vector, Tensor::matrix) {
  print(Tensor::from<std::int64_t>({1, 2, 3, 4}, {2, 2}));          // → [[1, 2], [3, 4]]
  print(Tensor::vector({1, 2}), Tensor::matrix({{1, 2}, {3, 4}}));  // → [1, 2] [[1, 2], [3, 4]]
  print(Tensor::from(std::vector<double>{1, 2}, {2}).dtype());      // → f64
}

EXAMPLE(Tensor::uniform, Tensor::normal) {
  // One seed gives the same numbers on every machine.
  print(Tensor::uniform({2}, /*seed=*/1), Tensor::normal({2}, /*seed=*/1));
  // → [0.9572, 0.7009] [-0.7626, -2.392]
}

EXAMPLE(ValueType) {
  const ValueType type{{2, 3}, DType::f64};
  print(to_string(type), type.bytes());  // → f64 (2, 3) 48
}

EXAMPLE(same_bits) {
  print(same_bits(Tensor::ones({2}), Tensor::full({2}, 1)));  // → true
}

EXAMPLE(to_string) {
  print(to_string(Shape{2, 3}));  // → (2, 3)
}

EXAMPLE(infer_shape) {
  const std::int64_t sizes[] = {2, -1};
  print(infer_shape(sizes, 6));  // → (2, 3)
}

EXAMPLE(allocate_buffer) {
  const Buffer buffer = allocate_buffer(64);
  print(Tensor(buffer, {16}, DType::f32).shape());  // → (16)
}

EXAMPLE(size_of, name_of, is_floating, is_half, is_integer, promote, dtype_of) {
  print(size_of(DType::bf16), name_of(DType::bf16), is_floating(DType::i64));  // → 2 bf16 false
  print(is_half(DType::f16), is_integer(DType::u8), promote(DType::i32, DType::f32));
  // → true true f32
  print(dtype_of<float>());  // → f32
}

EXAMPLE(visit, convert_element, BFloat16, Float16, DType) {
  print(convert_element<std::int32_t>(2.9), convert_element<std::uint8_t>(300.0));  // → 2 255
  const auto bytes = visit(DType::f64, []<class T>(T) { return sizeof(T); });
  print(bytes, static_cast<double>(static_cast<float>(BFloat16(1.01F))));  // → 8 1.008
}

EXAMPLE(Shape, strides_of) {
  Shape shape{2, 3};
  shape.push_back(4);
  print(shape, shape.rank(), shape.elements(), shape[-1], shape.size(0));  // → (2, 3, 4) 3 24 4 2
  print(strides_of(shape)[0]);                                             // → 12
  shape.erase(1);
  shape.insert(0, 1);
  print(shape, shape.wrap(-1), shape.is_possible());  // → (1, 2, 4) 2 true
}

EXAMPLE(Axes, broadcast) {
  print(sum(Tensor::ones({2, 3, 4}), {0, -1}).shape());        // → (3)
  print(broadcast({2, 1}, {3}, "example", Where::current()));  // → (2, 3)
}

EXAMPLE(Tape) {
  Tape tape;
  const Var w = tape.parameter(Tensor::vector({1, 2}), "w");
  const Var x = tape.constant(Tensor::vector({3, 4}));
  const Var loss = sum(w * x);
  print(loss, backward(loss)[w]);  // → 11 [3, 4]
  print(tape.node_count());        // → 4
  tape.clear();                    // for the next step; w, x and loss are no longer valid
}

EXAMPLE(Tape::scope, Tape::Scope) {
  Tape tape;
  const Tape::Scope scope = tape.scope("layer1");
  const Var w = tape.parameter(Tensor::ones({2}), "weight");
  print(tape.describe(w.node()));  // → layer1/weight parameter #0
}

EXAMPLE(Tape::ModuleScope, Tape::stage_of, Tape::inherits_scope, Tape::name_hash) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2}));
  const Tape::Scope own = tape.scope("training");
  const Tape::ModuleScope block(tape, "encoder/0");
  const Tape::ModuleScope attention(tape, "encoder/0/attention");
  const NodeId node = exp(x).node();
  print(tape.scope_of(node));                               // → training/encoder/0/attention
  print(tape.stage_of(node));                               // → training
  print(tape.inherits_scope(node));                         // → false
  print(tape.name_hash(node) == tape.name_hash(x.node()));  // → false
}

EXAMPLE(Tape::no_gradient, Tape::NoGradient, Tape::WithGradient) {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(3));
  const Var fixed = [&] {
    const auto guard = tape.no_gradient();
    return square(x);
  }();
  print(gradient(fixed * x, x));  // → 9
}

EXAMPLE(Tape::set_seed, Tape::seed, Tape::generation, Tape::set_generation) {
  Tape a, b;
  a.set_seed(7);
  b.set_seed(7);
  print(same_bits(normal(a, {3}).value(), normal(b, {3}).value()));  // → true
  print(a.seed(), a.generation());                                   // → 7 0
}

EXAMPLE(Tape::set_part, Tape::part) {
  Tape tape;
  tape.set_part(2);    // journals of its loops have a folder of their own
  print(tape.part());  // → 2
}

EXAMPLE(Tape::update_after_run, Tape::updates) {
  Tape tape;
  const Tensor average = Tensor::scalar(0);
  const Var x = tape.parameter(Tensor::scalar(8));
  tape.update_after_run(average, x, 0.25);  // an exponential average
  backward(square(x));
  print(average);  // → 2
}

EXAMPLE(Tape::find_leaf) {
  Tape tape;
  const Tensor weight = Tensor::ones({2});
  const Var w = tape.parameter(weight);
  print(tape.find_leaf(weight) == w);  // → true
}

EXAMPLE(Tape::metadata_bytes, Tape::evaluator, Tape::set_evaluator) {
  Tape tape(eager());
  print(tape.metadata_bytes() < 100'000, tape.evaluator() != nullptr);  // → true true
}

EXAMPLE(Var) {
  Tape tape;
  const Var x = tape.constant(Tensor::matrix({{1, 2}, {3, 4}}), "x");
  print(x.shape(), x.rank(), x.dtype());          // → (2, 2) 2 f32
  print(x[0], x[{1, 1}].item(), sum(x).value());  // → [1, 2] 4 10
  print(x.defined(), x.belongs_to(tape), x.is_current(), Var().defined());
  // → true true true false
  sum(x).named("total");  // for reports
}

EXAMPLE(as_matrix, as_vector, as_array) {
  const Tensor x = Tensor::matrix({{1, 2}, {3, 4}});
  print(as_matrix<float>(x).trace(), as_array<float>(x).maxCoeff());  // → 5 4
  as_matrix<float>(x).row(0) *= 10;                                   // changes the tensor
  print(x, as_vector<float>(x.reshape({4})).sum());                   // → [[10, 20], [3, 4]] 37
}

EXAMPLE(to_tensor, to_tensor_transposed, borrow_tensor) {
  print(to_tensor(Eigen::Matrix2f{{1, 2}, {3, 4}}));  // → [[1, 2], [3, 4]]
  Eigen::VectorXd v = Eigen::VectorXd::Ones(2);
  const Tensor shared = borrow_tensor(v);  // v must outlive it
  v[0] = 5;
  print(shared);  // → [5, 1]
}

EXAMPLE(Tensor::raw, Tensor::buffer, Tensor::type) {
  const Tensor x = Tensor::vector({1, 2});
  print(x.raw() == x.buffer().get(), to_string(x.type()));  // → true f32 (2)
}

EXAMPLE(Var::node, Var::id, Var::output, Var::type, Var::tape) {
  Tape tape;
  const Var x = tape.constant(Tensor::vector({3, 1, 2}));
  const Var largest = max(x);
  print(largest.node(), largest.id(), to_string(largest.type()));  // → 1 1 f32 ()
  // The position, the second output of the node.
  print(largest.output(1));   // → 0
  print(&x.tape() == &tape);  // → true
}

EXAMPLE(Tape::inputs, Tape::operation, Tape::name, Tape::scope_of, Tape::producer,
        Tape::value_count, Tape::is_leaf, Tape::is_parameter, Tape::shape, Tape::dtype, Tape::bytes,
        Tape::where, Tape::output_count, Tape::first_output, Tape::type, Tape::nodes) {
  Tape tape;
  const Var w = tape.parameter(Tensor::ones({2}), "w");
  const Var y = tanh(w);
  const NodeId node = y.node();
  print(tape.operation(node).name, tape.inputs(node)[0], tape.output_count(node));  // → tanh 0 1
  print(tape.name(w.node()), tape.is_leaf(w.node()), tape.is_parameter(w.node()));  // → w true true
  print(tape.shape(y.id()), tape.dtype(y.id()), tape.bytes(y.id()), tape.producer(y.id()));
  // → (2) f32 8 1
  print(tape.value_count(), tape.scope_of(node).empty(), tape.where(node).line() > 0);
  // → 2 true true
  print(tape.nodes().inputs(node)[0]);  // → 0
}

EXAMPLE(compute_dtype, is_narrow_integer) {
  print(compute_dtype(DType::bf16), is_narrow_integer(DType::i16));  // → f32 true
}

EXAMPLE(format_bytes) {
  print(format_bytes(1536_KiB), format_bytes(100));  // → 1.50 MiB 100 B
}

EXAMPLE(Shape::begin, Shape::end, Shape::sizes) {
  const Shape shape{2, 3, 4};
  std::int64_t most = 0;
  for (const std::int64_t size : shape) most = std::max(most, size);
  print(most, Shape(shape.sizes().last(2)));  // → 4 (3, 4)
}

EXAMPLE(NodeView, NodeView::id, NodeView::operation, NodeView::attributes, NodeView::where,
        NodeView::input_count, NodeView::output_count, NodeView::input, NodeView::output) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({4, 8})), w = tape.constant(Tensor::ones({8, 2}));
  const NodeView node(tape.nodes(), matmul(x, w).node());
  print(node.operation().name, node.id(), node.input_count(), node.output_count());
  // → matmul 2 2 1
  print(node.input(1).shape, node.output().shape, node.attributes().empty());
  // → (8, 2) (4, 2) false
  print(node.where().line() == tape.where(0).line() + 1);  // → true
}

EXAMPLE(cost_of, bytes_moved, workspace_of) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({4, 8})), w = tape.constant(Tensor::ones({8, 2}));
  const NodeView product(tape.nodes(), matmul(x, w).node());
  // 2·4·8·2 operations on 32 + 16 + 8 numbers of 4 bytes.
  print(cost_of(product).flops, bytes_moved(product));  // → 128 224
  print(workspace_of(product, /*threads=*/1));          // → 0
}

EXAMPLE(Tape::var, Tape::set_name, Tape::have_one_shape, Tape::attributes) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({2}));
  const Var y = exp(x);
  tape.set_name(y.node(), "growth");                      // as `named` does
  print(tape.describe(y.node()), tape.var(y.id()) == y);  // → growth exp #1 true
  print(tape.have_one_shape(x.id(), y.id()), tape.attributes(y.node()).empty());  // → true true
}

EXAMPLE(Tape::is_blocked) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({2}));
  const auto guard = tape.no_gradient();
  print(tape.is_blocked(exp(x).node()), tape.is_blocked(x.node()));  // → true false
}

EXAMPLE(Tape::find_or_record) {
  Tape tape;
  const Tensor weight = Tensor::ones({2});
  const Var w = tape.find_or_record(weight, /*trainable=*/true, "weight");
  // The same parameter wherever a model uses the tensor.
  print(tape.find_or_record(weight, true, "weight") == w, tape.node_count());  // → true 1
}

EXAMPLE(Tape::forget_updates) {
  Tape tape;
  const Tensor average = Tensor::scalar(0);
  tape.update_after_run(average, square(tape.parameter(Tensor::scalar(8))), 0.25);
  print(tape.updates().size());  // → 1
  tape.forget_updates();         // no run will change the average
  print(tape.updates().size());  // → 0
}

EXAMPLE(Tape::record) {
  // An operation of your own that is a constant, like the built-in ones.
  static constexpr Operation doubled{.name = "doubled",
                                     .formula = "2·x",
                                     .summary = "Twice x.",
                                     .compute = [](const KernelCall& call) {
                                       const float* x = call.input().as<float>();
                                       for (std::int64_t i = 0; i < call.input().elements(); ++i) {
                                         call.output().as<float>()[i] = 2 * x[i];
                                       }
                                     }};
  Tape tape;
  const Var x = tape.constant(Tensor::vector({1, 2}));
  print(tape.record(doubled, {&x, 1}, {{x.type()}}, {}, Where::current()));  // → [2, 4]
}

EXAMPLE(Constants, Constants::optional, VarOrTensor) {
  // How a function takes values and tensors: the tensors become constants of the values' tape.
  const auto weighted = [](const Var& x, const Tensor& weight, const Tensor& bias) {
    const Constants on_tape("weighted", Where::current(), x, weight, bias);
    const Var y = x * on_tape(weight);
    const Var b = on_tape.optional(bias);  // may be undefined
    return b.defined() ? y + b : y;
  };
  Tape tape;
  const Var x = tape.constant(Tensor::vector({1, 2}));
  print(weighted(x, Tensor::vector({3, 4}), {}), weighted(x, Tensor::vector({3, 4}), x.value()));
  // → [3, 8] [4, 10]
}

EXAMPLE(VarOrTensor::is_tensor, VarOrTensor::x, VarOrTensor::tensor) {
  Tape tape;
  const VarOrTensor list[] = {tape.constant(Tensor::ones({2})), Tensor::zeros({2})};
  print(list[0].is_tensor(), list[0].x(), list[1].tensor());  // → false [1, 1] [0, 0]
}

}  // namespace reference
