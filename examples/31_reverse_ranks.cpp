// Where was the heat at the beginning? A rod is divided over as many processes as `mpirun` starts.
// In each step, they exchange the cells at the ends of their parts. The adjoint of a step sends the
// adjoints of these cells back. `ReverseDriver` does the checkpointing on all ranks alike.
//
// The first temperature is found from the last one by gradient descent. Each gradient is that of
// 2,000 steps. The last one is computed twice: at once, and in two runs of which the second one
// continues the first. Both have the same bits.
//
//   mpirun -n 4 31_reverse_ranks [--quick] [--output FOLDER]
#include <mpi.h>
#include <palimpsest.h>
#include <palimpsest/strategy/mpi/reverse_ranks.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace palimpsest;

namespace {

using Cells = std::vector<double>;

constexpr std::size_t cells = 400;
constexpr double diffusion = 0.4;  // κ·τ/h²

/// This rank's part of the rod, whose ends let no heat out.
class Rod {
 public:
  explicit Rod(const RankWorld& world)
      : before_(world.rank() > 0 ? world.rank() - 1 : MPI_PROC_NULL),
        after_(world.rank() + 1 < world.size() ? world.rank() + 1 : MPI_PROC_NULL),
        first_(cells * static_cast<std::size_t>(world.rank()) /
               static_cast<std::size_t>(world.size())),
        last_(cells * static_cast<std::size_t>(world.rank() + 1) /
              static_cast<std::size_t>(world.size())) {}

  std::size_t first() const { return first_; }
  std::size_t size() const { return last_ - first_; }

  /// One step of the heat equation. Heat flows between neighbours.
  void advance(Cells& u) const {
    double left = u.front();
    double right = u.back();
    exchange(u.front(), u.back(), left, right);
    double previous = left;
    for (std::size_t i = 0; i < u.size(); ++i) {
      const double next = i + 1 < u.size() ? u[i + 1] : right;
      const double old = u[i];
      u[i] = old + diffusion * (previous - 2 * old + next);
      previous = old;
    }
  }

  /// Its adjoint. A cell gets back what its neighbours received from it, so both ends of a part are
  /// exchanged again.
  void reverse(Cells& adjoint) const {
    const Cells received = adjoint;
    for (double& cell : adjoint) cell *= 1 - 2 * diffusion;
    for (std::size_t i = 0; i + 1 < adjoint.size(); ++i) {
      adjoint[i] += diffusion * received[i + 1];
      adjoint[i + 1] += diffusion * received[i];
    }
    // At the ends of the rod, a cell is its own neighbour.
    double left = received.front();
    double right = received.back();
    exchange(received.front(), received.back(), left, right);
    adjoint.front() += diffusion * left;
    adjoint.back() += diffusion * right;
  }

  static double sum(double own) {
    double all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
  }

 private:
  /// Sends the ends of this part, and receives the cells next to them. Keeps `left` and `right` at
  /// the ends of the rod.
  void exchange(double first, double last, double& left, double& right) const {
    MPI_Sendrecv(&last, 1, MPI_DOUBLE, after_, 0, &left, 1, MPI_DOUBLE, before_, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&first, 1, MPI_DOUBLE, before_, 1, &right, 1, MPI_DOUBLE, after_, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

  int before_;
  int after_;
  std::size_t first_;
  std::size_t last_;
};

struct Settings {
  std::uint64_t steps = 2000;
  int iterations = 40;
  std::string output = ".";
};

double hump(double x, double at, double width) {
  return std::exp(-(x - at) * (x - at) / (width * width));
}

/// Half the squared distance from `measured` after all steps, and its gradient with respect to the
/// first temperature.
struct Misfit {
  double value = 0;  // of this part
  Cells gradient;
};

/// Nothing if the run ended early.
std::optional<Misfit> misfit_of(const Rod& rod, Cells u, const Cells& measured,
                                ReverseOptions options, ReverseReport& report) {
  Misfit misfit;
  const ReverseFunctions<Cells> functions{
      .advance = [&](Cells& state, std::uint64_t) { rod.advance(state); },
      .reverse = [&](Cells&, Cells& adjoint, std::uint64_t) { rod.reverse(adjoint); },
      .seed =
          [&](Cells& state) {
            Cells adjoint(state.size());
            for (std::size_t i = 0; i < state.size(); ++i) {
              adjoint[i] = state[i] - measured[i];
              misfit.value += 0.5 * adjoint[i] * adjoint[i];
            }
            return adjoint;
          },
      .accumulated = {named("misfit", misfit.value)},
      .inputs = {named("measured", measured)}};
  ReverseDriver driver(functions, std::move(options));
  std::optional<Cells> gradient = driver.run(u);
  report = driver.report();
  if (!gradient) return {};
  misfit.gradient = std::move(*gradient);
  return misfit;
}

bool run(RankWorld& world, const Settings& settings) {
  const Rod rod(world);
  Cells truth(rod.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double x = (static_cast<double>(rod.first() + i) + 0.5) / cells;
    truth[i] = hump(x, 0.3, 0.1) + 0.6 * hump(x, 0.7, 0.15);
  }
  Cells measured = truth;
  for (std::uint64_t step = 0; step < settings.steps; ++step) rod.advance(measured);

  const ReverseOptions options{
      .steps = settings.steps, .memory_budget = 64_KiB, .group = reverse_ranks(world)};
  ReverseReport report;
  Cells u(rod.size());
  double first = 0;
  double value = 0;
  for (int iteration = 0; iteration < settings.iterations; ++iteration) {
    const Misfit misfit = *misfit_of(rod, u, measured, options, report);
    value = Rod::sum(misfit.value);
    if (iteration == 0) first = value;
    if (world.rank() == 0 && iteration % 10 == 0) {
      std::printf("iteration %2d, misfit %.3e\n", iteration, value);
    }
    for (std::size_t i = 0; i < u.size(); ++i) u[i] -= 1.5 * misfit.gradient[i];
  }
  if (world.rank() == 0) {
    std::printf("%llu states of %llu steps on each rank, %.2f steps advanced per step\n",
                static_cast<unsigned long long>(report.states_in_memory),
                static_cast<unsigned long long>(report.steps),
                static_cast<double>(report.steps_advanced) / static_cast<double>(report.steps));
  }

  ReverseOptions resumed = options;
  resumed.memory_budget = 256_KiB;
  resumed.resume = settings.output + "/31_journal";
  resumed.tag = "31_reverse_ranks 1";
  resumed.stop_after = std::chrono::microseconds(500);
  const Misfit once = *misfit_of(rod, u, measured, options, report);
  std::optional<Misfit> pieces;
  int runs = 0;
  for (; !pieces; ++runs) {
    if (runs == 1) resumed.stop_after = {};
    pieces = misfit_of(rod, u, measured, resumed, report);
  }
  world.together([&] {
    if (world.rank() == 0) std::filesystem::remove_all(resumed.resume);
  });
  const bool is_same = pieces->gradient == once.gradient && pieces->value == once.value;
  const bool all_same = Rod::sum(is_same ? 0 : 1) == 0;
  if (world.rank() == 0) {
    std::printf("the misfit is %.1e of the first one\n", value / first);
    std::printf("in %d runs, the gradient has %s bits\n", runs, all_same ? "the same" : "other");
  }
  return all_same && value < 1e-2 * first;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--quick") settings.steps = 400;
    if (std::string_view(argv[i]) == "--output" && i + 1 < argc) settings.output = argv[i + 1];
  }
  RankWorld world;
  try {
    return run(world, settings) ? 0 : 1;
  } catch (const std::exception& error) {
    if (world.first_failed().value_or(world.rank()) == world.rank()) {
      std::cerr << error.what() << '\n';
    }
    return 1;
  }
}
