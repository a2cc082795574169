// Examples of docs/reference/running.md.
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
  // → auto: peak 12.0 KiB (100.0 % of keep-all), 0 of 2 steps recompute, 0.0 % extra work
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
  const ExportedC step = export_c(program, {.memory_budget = 4_KiB, .name = "step"});
  print(step.parameter_bytes, step.result_bytes);  // → 8 12
  write_files(step, ".");                          // step.h and step.c
}

}  // namespace reference
