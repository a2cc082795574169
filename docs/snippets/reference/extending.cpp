// Examples of docs/reference/extending.md.
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(operations) {
  std::size_t without_derivative = 0;
  for (const Operation* operation : operations()) without_derivative += operation->vjp == nullptr;
  print(operations().size() > 100, without_derivative > 10);  // → true true
}

EXAMPLE(Attributes, Attributes::as, Attributes::empty, Attributes::are_in_round,
        Attributes::may_come_again, Attributes::describe) {
  struct Power {
    std::int64_t exponent;
  };
  const Attributes cube = Power{3};
  print(cube.as<Power>().exponent, cube == Attributes(Power{3}), cube == Attributes(Power{2}));
  // → 3 true false
  print(cube.empty(), Attributes().empty());  // → false true
  // On a tape that was cleared and recorded again, and in another process.
  print(cube.are_in_round(1, Power{3}), cube.may_come_again());  // → true true
  std::vector<std::uint64_t> words;
  const bool is_described = cube.describe(words);
  print(is_described, words.size(), words[0]);  // → true 1 3
}

EXAMPLE(same_number) {
  print(same_number(0.0, -0.0), same_number(std::nan(""), std::nan("")));  // → false true
}

EXAMPLE(RandomStream, Round, in_round, seed_of) {
  Tape tape;
  tape.set_seed(7);
  const RandomStream stream = tape.fresh_stream();  // an attribute of a random operation
  print(stream.seed, stream.node, in_round(stream, 2).generation);  // → 7 0 2
  print(in_round(stream, {2, 1}).seed);                             // → 8
  print(seed_of(stream) == seed_of(in_round(stream, 0)), seed_of(tape.fresh_stream()) != 0);
  // → true true
}

EXAMPLE(fill_uniform, fill_between, fill_normal, is_interval) {
  std::array<float, 8> all{}, rest{};
  fill_uniform({.seed = 1}, all.data(), 8);
  fill_uniform({.seed = 1}, rest.data(), 4, /*first=*/4);  // as another thread would
  print(all[4] == rest[0], all[7] == rest[3]);             // → true true
  fill_between({.seed = 1}, all.data(), 8, -1, 1, DType::f32);
  fill_normal({.seed = 1}, rest.data(), 8, /*mean=*/100, /*deviation=*/1);
  print(all[0] >= -1 && all[0] < 1, rest[0] > 90, is_interval(1, 1));  // → true true false
}

EXAMPLE(Meter, Meter::allocate, Meter::count, Meter::allocated, Meter::live, Meter::peak,
        Meter::reserved, Meter::peak_reserved, Meter::reset_peaks) {
  const Meter meter;
  Buffer first = meter.allocate(1_KiB);
  const Buffer second = meter.count(allocate_buffer(64), 64);  // existing storage
  first.reset();
  print(meter.live(), meter.peak(), meter.allocated(second));  // → 64 1088 true
  print(meter.reserved(), meter.peak_reserved());              // → 64 1088
  meter.reset_peaks();
  print(meter.peak());  // → 64
}

EXAMPLE(raise_to) {
  std::atomic<Bytes> most = 100;
  raise_to(most, 50);
  raise_to(most, 200);
  print(most.load());  // → 200
}

EXAMPLE(Tape::has_value, Tape::buffer, Tape::value, Tape::look, Tape::drop, Tape::changes,
        Tape::set_buffer) {
  Tape tape;
  const Var y = exp(tape.constant(Tensor::zeros({2})));
  print(tape.has_value(y.id()));  // → false
  print(tape.value(y.id()));      // computes it  // → [1, 1]
  print(tape.has_value(y.id()));  // → true
  const std::uint64_t before = tape.changes();
  tape.drop(y.id());
  print(tape.buffer(y.id()) == nullptr, tape.changes() - before);  // → true 1
  tape.set_buffer(y.id(), Tensor::vector({5, 6}).buffer());        // instead of computing it
  print(y);                                                        // → [5, 6]
}

EXAMPLE(Tape::notice_writes, Tape::outdated, Tape::force_out_outdated, Tape::require_current,
        note_write) {
  Tape tape;
  const Tensor weight = Tensor::ones({32});
  const Var y = exp(tape.parameter(weight));
  evaluate(y);
  note_write(weight, "my_step");  // as the library does before it writes into a tensor
  tape.notice_writes();
  print(tape.has_value(y.id()), tape.outdated().size());  // → false 1
  const ValueId target = y.id();
  tape.require_current({&target, 1});  // throws on an eager tape
  tape.force_out_outdated();
  print(tape.outdated().at(y.id()).buffer == nullptr);  // → true
}

EXAMPLE(Tape::in_use) {
  Tape tape;
  print(tape.in_use().is_at_least(InUse::Level::open));  // → false
}

EXAMPLE(version_of, latest_version) {
  const Tensor weight = Tensor::ones({2});
  note_write(weight, "my_step");
  const StorageVersion version = version_of(weight.buffer());
  print(version.call, version.number == latest_version());  // → my_step true
}

EXAMPLE(Tape::is_program, Tape::require_fixed) {
  Program::values([](Tape& tape) -> std::vector<Var> {
    const Var two = full(tape, {2}, 2);
    // Throws for a value that depends on a leaf.
    tape.require_fixed(two.id(), "my_function", "return it", Where::current());
    print(tape.is_program());  // → true
    return {two};
  });
}

EXAMPLE(Tape::copy_nodes, Tape::begins) {
  Tape tape, copy;
  const Var x = tape.parameter(Tensor::ones({2}));
  exp(x);
  copy.copy_nodes(tape);
  sin(x);
  print(copy.node_count(), copy.begins(tape), tape.begins(copy));  // → 2 true false
}

EXAMPLE(Tape::placeholder) {
  Tape tape(lazy());
  const Var x = tape.placeholder({{2}, DType::f32}, Where::current());
  const Var y = square(x);
  tape.set_buffer(x.id(), Tensor::vector({3, 4}).buffer());
  print(y);  // → [9, 16]
}

EXAMPLE(Tape::fresh_stream, Tape::accompany, Tape::share_streams) {
  Tape tape, other, translation;
  tape.set_seed(7);
  tape.fresh_stream();
  other.accompany(tape);
  // Draws what the first operation of `tape` draws.
  print(other.fresh_stream() == RandomStream{.seed = 7});  // → true
  translation.share_streams(tape);
  print(translation.fresh_stream().node);  // → 1
  print(tape.fresh_stream().node);         // → 2
}

EXAMPLE(Tape::identity, Tape::expire_handles, Tape::has_kept, TapeIdentity::tape,
        TapeIdentity::epoch) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2}));
  const std::uint32_t epoch = tape.identity().epoch();
  print(tape.identity().tape() == &tape, tape.has_kept(x.id(), epoch));  // → true true
  tape.expire_handles();                                                 // nodes and values stay
  print(x.is_current(), tape.node_count(), tape.identity().epoch() > epoch);  // → false 1 true
}

EXAMPLE(WengertList::node_count, WengertList::value_count, WengertList::operation,
        WengertList::attributes, WengertList::where, WengertList::inputs, WengertList::first_output,
        WengertList::output_count, WengertList::is_leaf, WengertList::is_parameter,
        WengertList::describe, WengertList::producer, WengertList::dtype, WengertList::shape,
        WengertList::type) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({2, 3}), "x");
  sum(x * x);
  const WengertList& nodes = tape.nodes();
  for (NodeId node = 0; node < nodes.node_count(); ++node) {
    print(nodes.describe(node), nodes.inputs(node).size(),
          to_string(nodes.type(nodes.first_output(node))));
    // → x parameter #0 0 f32 (2, 3)
    // → multiply #1 2 f32 (2, 3)
    // → sum #2 1 f32 ()
  }
  print(nodes.operation(0).name, nodes.is_leaf(0), nodes.is_parameter(0), nodes.is_leaf(1));
  // → parameter true true false
  print(nodes.value_count(), nodes.output_count(2), nodes.producer(2));  // → 3 1 2
  print(nodes.shape(0), nodes.dtype(0), nodes.attributes(0).empty());    // → (2, 3) f32 true
  print(same_line(nodes.where(1), nodes.where(2)));                      // → true
}

EXAMPLE(WengertList::labels, WengertList::name, WengertList::scope_of, WengertList::stage_of,
        WengertList::name_hash, WengertList::text, WengertList::have_one_shape, WengertList::begins,
        WengertList::metadata_bytes) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({2, 3}), "x");
  const WengertList before = tape.nodes();  // a copy
  const auto scope = tape.scope("layer");
  relu(x).named("active");
  const WengertList& nodes = tape.nodes();
  print(nodes.name(1), nodes.scope_of(1), nodes.stage_of(1));            // → active layer layer
  print(nodes.text(nodes.labels(1).scope), nodes.labels(1).is_blocked);  // → layer false
  print(nodes.have_one_shape(0, 1), nodes.name_hash(0) == nodes.name_hash(1));  // → true false
  print(before.begins(nodes, /*round=*/0), nodes.begins(before, 0));            // → true false
  print(before.metadata_bytes() < nodes.metadata_bytes());                      // → true
}

EXAMPLE(HandleEpochs::identity, HandleEpochs::has_kept) {
  Tape tape;
  const HandleEpochs handles(tape);
  print(handles.identity().tape() == &tape);                         // → true
  print(handles.has_kept(/*value=*/0, handles.identity().epoch()));  // → true
}

EXAMPLE(TapeIdentity::take, TapeIdentity::move_on, TapeIdentity::give_back) {
  Tape tape;
  TapeIdentity& identity = TapeIdentity::take(tape);
  const std::uint32_t epoch = identity.epoch();
  identity.move_on();
  print(identity.tape() == &tape, identity.epoch() - epoch);  // → true 1
  identity.give_back();
  print(identity.tape() == nullptr, identity.epoch() - epoch);  // → true 2
}

EXAMPLE(adjoint_of, arithmetic_of, with_slope) {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(0)), dy = tape.constant(Tensor::scalar(3));
  // dy · cos(x)
  print(functions::adjoint_of<functions::Sin>(dy, x, /*parameters=*/nullptr));  // → 3
  // The sine is no sum, difference or product.
  print(functions::arithmetic_of<functions::Sin>() == ArithmeticStep::none);  // → true
  // The value of tanh(x), with the derivative of 5x.
  print(backward(functions::with_slope(tanh(x), 5 * x))[x]);  // → 5
}

EXAMPLE(Tape::is_temporary) {
  Tape tape(lazy());
  const Var x = tape.parameter(Tensor::scalar(3));
  // Nodes stay on the tape until it is cleared.
  print(x, tape.is_temporary());  // → 3 false
}

EXAMPLE(Tape::resize) {
  Tape tape(lazy());
  const Var x = tape.parameter(Tensor::scalar(1));
  const Var end = scan(x, 3, [](const Var& state, const StepNumber&) { return 2 * state; });
  // The last output of a loop is memory for its states; the planner decides how much.
  const NodeId loop = tape.producer(end.id());
  const ValueId states = tape.first_output(loop) + tape.output_count(loop) - 1;
  print(tape.operation(loop).has_state_budget, tape.shape(states));  // → true (0)
  tape.resize(states, {256});
  print(tape.shape(states));  // → (256)
}

EXAMPLE(inner_of) {
  const std::shared_ptr<Evaluator> none_given;
  print(inner_of(none_given) == nullptr, inner_of(lazy()) == nullptr);  // → true true
}

EXAMPLE(Tape::evaluator, Tape::set_evaluator) {
  Tape tape;                           // computes node by node
  print(tape.evaluator() == nullptr);  // → true
  tape.set_evaluator(lazy({.memory_budget = 1_MiB}));
  print(tape.evaluator() == nullptr);  // → false
}

EXAMPLE(Tape::recording, Tape::here) {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(2));
  const Var end = scan(x, 3, [&](const Var& state, const StepNumber&) {
    // The body is recorded on a tape of its own, where a replacement stands for x.
    print(&tape.recording() == &tape, tape.recording().here(x, "body", Where::current()) == x);
    // → false false
    return state * x;
  });
  print(end);  // → 16
}

}  // namespace reference
