// Examples of docs/reference/running.md.
#include <palimpsest/strategy/explain/explanation.h>

#include <sstream>
#include <stop_token>

#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(RunOptions) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({1000}));
  const RunOptions options{.memory_budget = 64_KiB, .threads = 1, .profile = true};
  print(backward(sum(exp(x)), options).report().measured_peak <= 64_KiB);  // → true
}

EXAMPLE(Report, Report::summary, Report::explain) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({1000}));
  const Report report = backward(sum(exp(sin(x)))).report();
  print(report.summary());
  // → auto: peak 12.6 KiB (100.0 % of keep-all), 0 of 1 steps recompute, 0.0 % extra work
  // a page of text; write_html writes it as a page.
  print(report.explain().substr(0, 4));  // → plan
  print(report.recomputed, report.compute_overhead, report.measured_peak <= report.predicted_peak);
  // → 0 0 true
}

EXAMPLE(Report::by_operation, Report::live_bytes_curve, Report::write_svg,
        Report::write_chrome_trace, Report::write_html) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({1000}));
  const Report report = backward(sum(exp(sin(x))), {.profile = true}).report();
  print(report.by_operation().empty(), report.live_bytes_curve().points.empty());  // → false false
  report.write_svg("live.svg");             // live bytes over time
  report.write_html("peak.html");           // what is live, and why
  report.write_chrome_trace("trace.json");  // for Perfetto
}

EXAMPLE(Program, Program::gradients, Program::plan, Program::outputs, Program::tape, Runner) {
  const Tensor weight = Tensor::vector({1, 2});
  Var input;
  const Program program = Program::gradients(
      [&](Tape& tape) {
        input = tape.constant(Tensor::zeros({2}), "input");
        return sum(square(tape.parameter(weight) * input));
      },
      {.memory_budget = 1_MiB});
  Runner runner(program);
  runner.bind(input, Tensor::vector({3, 4}));
  runner.run();
  print(runner.gradients().loss(), runner.gradients().entries()[0].gradient);  // → 73 [18, 64]
  print(program.plan().predicted_peak() <= 1_MiB, program.outputs().size());   // → true 2
  print(runner.report().computed > 0, program.tape().node_count() > 0);        // → true true
}

EXAMPLE(Program::values, Runner::value) {
  Var x;
  const Program program = Program::values([&](Tape& tape) -> std::vector<Var> {
    x = tape.constant(Tensor::zeros({2}));
    return {square(x)};
  });
  Runner runner(program);
  runner.bind(x, Tensor::vector({3, 4}));
  runner.run();
  print(runner.value(program.outputs()[0]));  // → [9, 16]
}

EXAMPLE(Runner::set_part, Runner::part) {
  const Program program = Program::values([](Tape& tape) -> std::vector<Var> {
    return {dropout(tape.constant(Tensor::ones({64})), 0.5)};
  });
  Runner first(program), second(program);  // draw the random numbers of parts 0 and 1
  const auto run = [&](Runner& runner) {
    runner.run();
    return runner.value(program.outputs()[0]).clone();
  };
  print(same_bits(run(first), run(second)));  // → false
  second.set_part(first.part());
  print(same_bits(run(first), run(second)));  // → true
}

EXAMPLE(lazy, eager, hybrid) {
  Tape at_once(eager()), in_stages(hybrid()), with_budget(lazy({.memory_budget = 1_MiB}));
  const Var x = at_once.constant(Tensor::vector({1, 2}));
  const Var y = square(x);           // computed now
  print(at_once.has_value(y.id()));  // → true
}

EXAMPLE(EngineEvaluator) {
  const auto evaluator = lazy({.threads = 1});
  Tape tape(evaluator);
  backward(sum(square(tape.parameter(Tensor::ones({2})))));
  print(evaluator->plans_made(), evaluator->options().threads);  // → 1 1
  evaluator->set_memory_budget(1_MiB);
  evaluator->release_memory();
}

EXAMPLE(Profile) {
  Tape tape;
  const Var loss = sum(exp(tape.parameter(Tensor::ones({1000}))));
  const Report first = backward(loss, {.profile = true}).report();
  // Plans with measured times instead of predicted ones.
  const auto costs = std::make_shared<const Profile>(first);
  print(backward(loss, {.costs = costs}).loss());  // → 2718
}

EXAMPLE(on_progress, RunProgress) {
  Tape tape;
  std::uint64_t done = 0;
  const auto progress = on_progress([&](const RunProgress& now) { done = now.steps_done; });
  backward(sum(exp(tape.parameter(Tensor::ones({1000})))), {.progress = progress});
  print(done > 0);  // → true
}

EXAMPLE(RunControl) {
  std::stop_source source;
  source.request_stop();
  Tape tape;
  try {
    backward(sum(exp(tape.parameter(Tensor::ones({2})))), {.stop = source.get_token()});
  } catch (const StoppedError&) {
    print("stopped");  // → stopped
  }
}

EXAMPLE(resident_size) {
  print(resident_size() > 1_MiB);  // → true
}

EXAMPLE(render, Chart) {
  const Chart chart{.title = "squares",
                    .x_label = "x",
                    .y_label = "y",
                    .curves = {{.label = "", .points = {{0, 0}, {1, 1}, {2, 4}}, .stepped = false}},
                    .lines = {}};
  print(render(chart).substr(0, 4));  // → <svg
}

EXAMPLE(export_c, write_files, ExportedC, ExportOptions, CName) {
  const Program program = Program::gradients([](Tape& tape) {
    const Var weight = tape.parameter(Tensor::vector({1, 2}), "weight");
    return sum(weight * weight);
  });
  const ExportedC square = export_c(program, {.memory_budget = 4_KiB, .name = "square"});
  print(square.parameter_bytes, square.result_bytes);  // → 8 12
  write_files(square, ".");                            // square.h and square.c
}

EXAMPLE(EngineEvaluator::compute, EngineEvaluator::meter, EngineEvaluator::precision) {
  const auto evaluator = lazy();
  Tape tape(evaluator);
  const Var y = exp(tape.constant(Tensor::ones({1000}))), z = sin(y);
  const ValueId values[] = {y.id(), z.id()};
  evaluator->compute(tape, values);  // both in one run
  print(tape.has_value(y.id()), tape.has_value(z.id()), evaluator->meter().live());
  // → true true 8000
  print(evaluator->precision().empty(), precise({PrecisionKind::mixed, DType::bf16})->precision());
  // → true mixed bf16
}

EXAMPLE(EngineEvaluator::prepare, EngineEvaluator::computed_for, EngineEvaluator::hold_temporary,
        EngineEvaluator::room_beside) {
  const auto evaluator = lazy({.memory_budget = 1_MiB});
  Tape tape(evaluator);
  const Var x = tape.constant(Tensor::ones({2}));
  // Options without a budget get the evaluator's.
  print(format_bytes(evaluator->prepare(tape, {.threads = 1}).memory_budget));  // → 1.00 MiB
  const auto held = evaluator->hold_temporary(tape);      // nothing: it has no tape of its own
  print(evaluator->computed_for(tape, {&x, 1})[0] == x);  // → true
  const auto plan = [](Bytes) { return Bytes{640}; };     // what a step needs
  const Buffer room = evaluator->room_beside(tape, 0, plan);
  print(evaluator->meter().live());  // → 640
}

EXAMPLE(EngineEvaluator::shared_engine, EngineEvaluator::set_engine, EngineEvaluator::engine) {
  const auto one = lazy(), other = lazy();
  other->set_engine(one->shared_engine());    // shares plans and memory
  print(&one->engine() == &other->engine());  // → true
}

EXAMPLE(Explanation, Explanation::peak_step, Explanation::peak_node, Explanation::live_at,
        Explanation::describe, Explanation::labels, Explanation::graph, Explanation::plan,
        Explanation::is_backward, Explanation::metadata_bytes) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({1000}));
  const Report report =
      backward(sum(square(cumsum(exp(x), 0))), {.threads = 1, .fuse = false}).report();
  const Explanation& peak = *report.explanation;
  print(peak.labels().operation(peak.peak_node()), peak.is_backward(peak.peak_node()));
  // → square_adjoint true
  for (const Explanation::LiveStorage& live : peak.live_at(peak.peak_step())) {
    print(peak.labels().operation(live.node), live.bytes,
          live.reason == Explanation::Reason::read_later);
    // → exp 4000 true
    // → cumsum 4000 false
    // → full 4000 false
    // → square_adjoint 4000 false
    // → sum 4 false
  }
  // Operation, name and source line.
  print(peak.describe(peak.peak_node()).find("running.cpp") != std::string::npos);  // → true
  print(peak.graph().node_count() >= peak.plan().simulation.computed, peak.metadata_bytes() > 0);
  // → true true
}

EXAMPLE(NodeLabels, NodeLabels::operation, NodeLabels::name, NodeLabels::scope, NodeLabels::line,
        NodeLabels::describe) {
  Tape tape;
  const auto scope = tape.scope("encoder");
  const Var y = exp(tape.parameter(Tensor::ones({1000}))).named("growth");
  const Report report = backward(sum(y * y), {.fuse = false}).report();
  const NodeLabels& labels = report.explanation->labels();
  print(labels.operation(1), labels.scope(1), labels.name(1));  // → exp encoder encoder/growth
  print(labels.line(1).starts_with("running.cpp:"), labels.describe(1).starts_with("exp"));
  // → true true
}

EXAMPLE(Explanation::recomputed, Explanation::other_budgets) {
  Tape tape;
  Var x = tape.parameter(Tensor::ones({1000}));
  for (int i = 0; i < 20; ++i) x = cumsum(sin(x), 0) * 0.1;
  const Report report = backward(sum(x), {.memory_budget = 60'000, .threads = 1}).report();
  print(report.explanation->recomputed().size() > 3, report.explanation->recomputed()[0].runs > 1);
  // → true true
  const Explanation::Budgets budgets = report.explanation->other_budgets(/*points=*/3);
  print(budgets.curve.size(), budgets.smallest.peak >= budgets.bound,
        budgets.smallest.overhead > 0);  // → 3 true true
}

EXAMPLE(Explanation::repeated_steps) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({1000}));
  const Var end = scan(x, 50, [](const Var& u, const StepNumber&) { return sin(u); });
  const Report report = backward(sum(end), {.memory_budget = 40'000, .threads = 1}).report();
  for (const Explanation::LoopSteps& loop : report.explanation->repeated_steps()) {
    print(loop.repeated == report.loops[0].recomputed_steps, loop.run > 100, loop.seconds > 0);
    // → true true true
  }
}

EXAMPLE(Profile::seconds, Profile::hash) {
  Tape tape;
  const Var loss = sum(exp(tape.parameter(Tensor::ones({1000}))));
  const Report report = backward(loss, {.profile = true}).report();
  const Profile profile(report);
  print(profile.seconds(report.steps[0].work).value() > 0, profile.seconds("other").has_value());
  // → true false
  print(profile.hash() == Profile(report).hash());  // → true
}

EXAMPLE(Report::idle) {
  const std::vector<Tensor> weights{Tensor::ones({4, 4}), Tensor::ones({4, 4})};
  const std::vector<Tensor> batch{Tensor::ones({8, 4})};
  Execution execution({.accumulation = 4, .parallelism = ParallelMode::pipeline, .stages = 2});
  const auto loss = [](Tape&, std::span<const Var> w, std::span<const Var> x) {
    return mean(matmul(tanh(matmul(x[0], w[0])), w[1]));
  };
  const Report report = execution.gradients(loss, weights, batch).report();
  print(report.stages.size(), report.timeline.size(), report.idle() < 1);  // → 2 16 true
}

EXAMPLE(RunControl::check) {
  // A long operation of your own that ends when the run is to stop.
  const CustomOperation slow({.name = "slow", .forward = [](const CustomCall& call) {
                                const auto x = call.inputs[0].data<float>();
                                const auto y = call.outputs[0].data<float>();
                                for (std::size_t i = 0; i < x.size(); ++i) {
                                  if (call.control != nullptr) call.control->check();
                                  y[i] = 2 * x[i];
                                }
                              }});
  Tape tape;
  print(slow({tape.constant(Tensor::vector({1, 2}))}));  // → [2, 4]
}

EXAMPLE(RunControl::step_done, RunControl::loop_step, RunControl::stop_token) {
  // The progress of a loop outside of any tape.
  std::uint64_t done = 0, in_loop = 0;
  const auto progress = on_progress([&](const RunProgress& now) {
    done = now.steps_done;
    in_loop = now.loop_step;
  });
  RunControl control({}, progress, /*steps=*/2);
  print(control.stop_token().stop_possible());  // → false
  control.step_done();
  for (std::uint64_t n = 0; n < 10; ++n) control.loop_step(n, 10);
  print(done, in_loop);  // → 1 9
  control.step_done();
  print(done);  // → 2
}

EXAMPLE(RunControl::throw_stopped) {
  try {
    RunControl::throw_stopped();  // as an operation of your own may do
  } catch (const StoppedError& error) {
    print(std::string(error.what()).substr(0, 13));  // → [run] stopped
  }
}

/// Counts the tapes that end or are cleared.
class CountingEvaluator : public EngineEvaluator {
 public:
  CountingEvaluator() : EngineEvaluator(RunOptions{}) {}
  void on_record(Tape&, std::uint32_t) override {}
  void on_clear(Tape&) noexcept override { ++cleared; }
  int cleared = 0;
};

EXAMPLE(EngineEvaluator::on_clear) {
  const auto evaluator = std::make_shared<CountingEvaluator>();
  Tape tape(evaluator);
  print(exp(tape.parameter(Tensor::scalar(0))));  // → 1
  tape.clear();
  print(evaluator->cleared);  // → 1
}

EXAMPLE(name_of) {
  print(name_of(AllocationPolicy::pooled), name_of(NativeCode::at_once));  // → pooled at_once
}

EXAMPLE(seconds_of_step, seconds_of_run) {
  print(seconds_of_step(1.0, /*serial=*/true, 4), seconds_of_step(1.0, /*serial=*/false, 4));
  // → 1 0.25
  // A network of 10 layers of 0.1 seconds, and its gradients.
  const Graph graph = graph_of(LayerSizes{.layers = 10, .activations = 1_MiB, .seconds = 0.1});
  const Plan plan = make_plan(graph, *keep_all());
  print(seconds_of_run(graph, plan, /*threads=*/1, Machine{}, /*measured=*/true));  // → 3
}

}  // namespace reference
