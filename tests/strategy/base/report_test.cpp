#include "strategy/base/report.h"

#include <algorithm>
#include <sstream>

#include "autodiff/kernels/kernels.h"
#include "strategy/base/svg.h"
#include "tests/catch.h"
#include "tests/strategy/random_program.h"
#include "tests/strategy/trace_events.h"
#include "tests/temporary_file.h"

namespace palimpsest::report_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

Report some_report(const RunOptions& options = {}) {
  Tape tape;
  return backward(record_random(tape, 5, 40).loss, options).report();
}

TEST_CASE("a report reads well") {
  std::ostringstream text;
  text << some_report({.memory_budget = 64_MiB, .threads = 2, .profile = true});
  CHECK_THAT(text.str(), Contains("predicted") && Contains("measured") && Contains("64.0 MiB") &&
                             Contains("on 2 threads") && Contains("by operation"));
}

TEST_CASE("a report names the kernels' level, and who else made its products") {
  const std::string level = some_report().kernel_level;
  const Kernels& used = kernels();
  const std::string library = used.product_library == nullptr ? "" : used.product_library;
  CHECK(level == used.level + (library.empty() ? "" : "+" + library));
}

TEST_CASE("what a report says of steps adds up") {
  const Report report = some_report({.planner = square_root(), .profile = true});
  CHECK(report.steps.size() == report.computed);
  std::uint32_t again = 0;
  for (const Report::Step& step : report.steps) again += step.recomputed;
  CHECK(again == report.recomputed);
  CHECK(again > 0);
  std::uint32_t calls = 0;
  for (const auto& time : report.by_operation()) calls += time.calls;
  CHECK(calls == report.computed);
  CHECK(report.resident > 0);
}

TEST_CASE("a report says what operations did, and what share of the machine that is") {
  const auto time_of = [](bool fuse, const std::string& operation) {
    Tape tape;
    const Var a = tape.parameter(Tensor::ones({32, 16}));
    const Var b = tape.parameter(Tensor::ones({16, 64}));
    const Var product = matmul(a, b);
    const Var y = sum(product, {0}) + max(tanh(product * product), {0});
    const Report report = evaluate({&y, 1}, {.fuse = fuse, .profile = true});
    for (const Report::OperationTime& time : report.by_operation()) {
      if (time.operation == operation) return time;
    }
    return Report::OperationTime{};
  };
  const Report::OperationTime product = time_of(false, "matmul");
  CHECK(product.calls == 1);
  CHECK(product.cost.flops == 2.0 * 32 * 16 * 64);
  CHECK(product.cost.bytes == 4.0 * (32 * 16 + 16 * 64 + 32 * 64));
  const Report::OperationTime joined = time_of(true, "multiply+tanh");
  CHECK(joined.calls == 1);
  CHECK(joined.cost.bytes == 4.0 * 2 * 32 * 64);
  CHECK(joined.cost.flops == 11.0 * 32 * 64);

  const Machine machine{.flops_per_second = 1e9, .bytes_per_second = 1e8};
  const Report::OperationTime by_flops{"by flops", 2, 0.5, {1e8, 1e6}};
  CHECK_THAT(by_flops.of_peak(machine), WithinRel(0.2, 1e-12));
  const Report::OperationTime by_bytes{"by bytes", 2, 0.5, {1e8, 2e7}};
  CHECK_THAT(by_bytes.of_peak(machine), WithinRel(0.4, 1e-12));
  CHECK(Report::OperationTime{}.of_peak(machine) == 0);
  // Each type has its own peak rate.
  Machine types = machine;
  types.products.f64 = 2e8;
  const Report::OperationTime in_f64{"by flops", 2, 0.5, {1e7, 1e6}, DType::f64};
  CHECK_THAT(in_f64.of_peak(types), WithinRel(0.1, 1e-12));
}

TEST_CASE("a report's table of operations has the share of each type, and of all") {
  Tape tape;
  const Var a = tape.parameter(Tensor::ones({64, 64}));
  const Var narrow = cast(a, DType::f64);
  const Var y = sum(matmul(a, a)) + cast(sum(matmul(narrow, narrow)), DType::f32);
  const Report report = evaluate({&y, 1}, {.profile = true});
  const std::string table = report.by_operation(measured_machine());
  CAPTURE(table);
  CHECK_THAT(table, Contains(" %  matmul x 1\n") && Contains(" %  matmul f64 x 1\n") &&
                        Contains("% of the peak of one thread\n"));
  const auto rows = static_cast<std::size_t>(std::ranges::count(table, '\n'));
  CHECK(rows == report.by_operation().size() + 1);
  Report twice = report;
  for (Report::Step& step : twice.steps) {
    step.event = {.node = step.event.node, .start = 0, .end = 1'000};
    step.cost = {.flops = 50, .bytes = 0};
  }
  CHECK_THAT(twice.by_operation(Machine{.flops_per_second = 1e9}),
             Contains("all at 5.0 % of the peak"));
  CHECK(evaluate({&y, 1}).by_operation(measured_machine()).empty());
}

TEST_CASE("a report says how many groups ran, and none without fusion") {
  const auto groups = [](bool fuse) {
    Tape tape;
    const Var a = tape.parameter(Tensor::ones({64, 64}));
    const Var y = sum(tanh(a * a)) + sum(exp(a + 1), {0, 1});
    return evaluate({&y, 1}, {.threads = 1, .fuse = fuse}).groups;
  };
  CHECK(groups(true) > 0);
  CHECK(groups(false) == 0);
}

TEST_CASE("the Chrome trace is JSON with an event a step") {
  const Report report = some_report({.profile = true});
  const TemporaryFile file;
  report.write_chrome_trace(file.path());
  const std::vector<TraceEvent> events = read_trace(file.path());
  CHECK(std::ranges::count(events, "X", &TraceEvent::phase) == std::ssize(report.steps));
}

TEST_CASE("the picture has axes, a curve and the budget") {
  const Report report = some_report({.memory_budget = 1_MiB, .profile = true});
  const TemporaryFile file;
  report.write_svg(file.path());
  CHECK_THAT(file.read(), Contains("<svg") && Contains("milliseconds") && Contains("MiB live") &&
                              Contains("budget") && Contains("predicted peak") &&
                              Contains("</svg>"));
}

TEST_CASE("a file that cannot be written is an error with its name") {
  CHECK_THROWS_WITH(some_report({.profile = true}).write_svg("/nowhere/picture.svg"),
                    Contains("/nowhere/picture.svg"));
  CHECK_THROWS_AS(some_report({.profile = true}).write_chrome_trace("/nowhere/trace.json"),
                  FileError);
}

TEST_CASE("what a run that was not profiled cannot show says so") {
  const Report report = some_report();
  CHECK(report.steps.empty());
  CHECK_THROWS_WITH(report.write_svg("picture.svg"), Contains(".profile = true"));
  CHECK_THROWS_AS(report.write_chrome_trace("trace.json"), ArgumentError);
  CHECK_THROWS_AS(report.live_bytes_curve(), ArgumentError);
  std::ostringstream text;
  text << report;
  CHECK_THAT(text.str(), Contains("predicted") && !Contains("in kernels"));
}

TEST_CASE("a chart thins long curves but keeps their extremes") {
  Chart chart;
  chart.title = "a < b & c";
  Chart::Curve curve;
  for (int i = 0; i < 200'000; ++i) curve.points.emplace_back(i, i == 123'457 ? 50 : 1);
  chart.curves.push_back(curve);
  const std::string svg = render(chart);
  CHECK(svg.size() < 200'000);
  CHECK_THAT(svg, Contains("a &lt; b &amp; c"));
  // The height of the single point at 50, on an axis up to 54.
  CHECK_THAT(svg, Contains("V67.7"));
}

}  // namespace
}  // namespace palimpsest::report_test
