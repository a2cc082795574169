// Writes the gradient of a Kalman filter as a C file that takes 16 KiB, and runs it.
//
// The filter tracks a vehicle by 100 positions. How strongly it accelerates, and how large the
// errors of the positions are, is found by descending the negative log likelihood of the positions.
// A device can do that itself with the exported function: it needs no library and no heap. Keeping
// all intermediate values would take more memory, so the function computes some of them again.
//
//   27_kalman_c [--quick] [--output FOLDER]
#include <palimpsest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "examples/support/host_c.h"
#include "examples/support/kalman.h"
#include "examples/support/program_main.h"

using namespace palimpsest;
using namespace examples;

namespace {

constexpr int descents = 60;
constexpr double rate = 0.01;

/// A program around the exported function that descends from the first noises.
std::string main_text(const Tensor& positions) {
  std::ostringstream text;
  text.precision(17);
  text << "#include <stdio.h>\n\n#include \"kalman.h\"\n\n"
       << "static const double positions[KALMAN_MEASUREMENTS_ELEMENTS] = {";
  for (const double number : positions.data<double>()) text << number << ", ";
  text << "};\n\nint main(void) {\n"
       << "  double noises[KALMAN_NOISES_ELEMENTS] = {0, 0};\n"
       << "  double loss = 0;\n"
       << "  double gradient[KALMAN_NOISES_ELEMENTS];\n"
       << "  for (int i = 0; i < " << descents << "; ++i) {\n"
       << "    if (kalman(noises, positions, &loss, gradient) != KALMAN_OK) return 1;\n"
       << "    for (int k = 0; k < 2; ++k) noises[k] -= " << rate << " * gradient[k];\n"
       << "  }\n"
       << "  printf(\"%.17g %.17g %.17g\\n\", loss, noises[0], noises[1]);\n"
       << "  return 0;\n}\n";
  return text.str();
}

/// Loss and noises after the same descent by the engine.
std::array<double, 3> descended(const Program& program, const Kalman& kalman) {
  Runner runner(program);
  Tensor noises = first_noises();
  double loss = 0;
  for (int i = 0; i < descents; ++i) {
    runner.bind(kalman.noises, noises);
    runner.run();
    const Gradients gradients = runner.gradients();
    loss = gradients.loss().item<double>();
    for (std::size_t k = 0; k < 2; ++k) {
      noises.data<double>()[k] -= rate * gradients[kalman.noises].data<double>()[k];
    }
  }
  return {loss, noises.data<double>()[0], noises.data<double>()[1]};
}

bool run(const Arguments& arguments) {
  Kalman kalman;
  if (arguments.quick) kalman.steps = 12;
  const Bytes budget = arguments.quick ? 3_KiB : 16_KiB;
  const Program program = kalman.program();
  const ExportedC exported = kalman.exported(program, budget);
  const ExportedC whole = kalman.exported(program, unlimited);
  std::printf(
      "%s of %s: parameters %lld, results %lld, arena %lld bytes; keeping everything takes "
      "%lld\n",
      format_bytes(exported.total_bytes()).c_str(), format_bytes(budget).c_str(),
      static_cast<long long>(exported.parameter_bytes),
      static_cast<long long>(exported.result_bytes), static_cast<long long>(exported.arena_bytes),
      static_cast<long long>(whole.total_bytes()));
  write_files(exported, arguments.output);
  const std::string at = arguments.output + "/";
  write_file(at + "kalman_main.c", main_text(kalman.simulated(1)));

  const auto [loss, acceleration, error] = descended(program, kalman);
  std::printf("engine: loss %.6f, deviations of acceleration %.3f and of positions %.3f\n", loss,
              std::exp(acceleration), std::exp(error));
  if (!has_command("cc")) {
    std::printf("there is no C compiler, so the C file is not run\n");
    return all_hold({{exported.total_bytes() <= budget, "the exported function fits its budget"}});
  }
  output_of("cc -std=c99 -pedantic -Wall -Wextra -Werror -O2 -o '" + at + "kalman' '" + at +
            "kalman.c' '" + at + "kalman_main.c' -lm");
  std::istringstream printed(output_of("'" + at + "kalman'"));
  double in_c[3] = {};
  printed >> in_c[0] >> in_c[1] >> in_c[2];
  std::printf("C:      loss %.6f, deviations of acceleration %.3f and of positions %.3f\n", in_c[0],
              std::exp(in_c[1]), std::exp(in_c[2]));
  const double expected[3] = {loss, acceleration, error};
  double difference = 0;
  for (int k = 0; k < 3; ++k) {
    difference = std::max(difference, std::abs(in_c[k] - expected[k]) / std::abs(expected[k]));
  }
  return all_hold({
      {exported.total_bytes() <= budget, "the exported function fits its budget"},
      {whole.total_bytes() > budget, "keeping everything would not fit"},
      {difference < 1e-9, format("C and engine differ by %.1e after the descent", difference)},
  });
}

}  // namespace

int main(int argc, char** argv) { return program_main(argc, argv, run); }
