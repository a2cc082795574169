#pragma once

#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace palimpsest::benchmarks {

/// The measurements of the benchmarks of one suite. A benchmark is named by its function and
/// arguments, as in `chain/1000`. The fastest of several repetitions counts.
class Results {
 public:
  struct Run {
    double seconds = 0;      ///< wall time of one iteration
    double cpu_seconds = 0;  ///< processor time of the benchmark's thread, of one iteration
    std::map<std::string, double> counters;
  };

  /// `partial`: some benchmarks were left out on purpose.
  explicit Results(bool partial = false) : partial_(partial) {}

  bool partial() const { return partial_; }
  void add(const std::string& benchmark, Run run);
  /// These return NaN for a benchmark that was left out on purpose. Otherwise they throw
  /// `std::out_of_range` naming the benchmark or counter that was not measured.
  double seconds(const std::string& benchmark) const;
  double cpu_seconds(const std::string& benchmark) const;
  double counter(const std::string& benchmark, const std::string& name) const;

 private:
  /// Null when the benchmark was left out.
  const Run* run(const std::string& benchmark) const;

  bool partial_;
  std::map<std::string, Run> runs_;
};

/// The smallest measured value. Ignores NaN, which marks values that could not be measured; returns
/// NaN when there is nothing else.
double least_of(std::span<const double> measured);

/// The figures that the documentation states, each checked against the measurements of this run.
class Claims {
 public:
  /// `partial`: omits claims whose value is NaN, because they were not run, instead of failing
  /// them.
  explicit Claims(bool partial = false) : partial_(partial) {}

  /// Claims that `subject` is at most, or at least, `target`. A claim with the value NaN fails.
  /// Claim ratios, because times do not compare across machines.
  void at_most(const std::string& subject, double target, double measured, std::string unit);
  void at_least(const std::string& subject, double target, double measured, std::string unit);
  /// Attaches a picture, an SVG document, to the claims.
  void draw(std::string picture) { picture_ = std::move(picture); }

  bool all_hold() const;
  /// The picture; empty when there is none.
  const std::string& picture() const { return picture_; }
  /// Writes an array of objects with the keys claim, target, measured, unit and holds.
  void write_json(std::ostream& stream) const;
  /// Prints a table with one claim per line.
  void print(std::ostream& stream) const;

 private:
  struct Claim {
    std::string text;
    double target;
    double measured;
    std::string unit;
    bool holds;
  };
  void add(const std::string& text, double target, double measured, std::string unit, bool holds);

  bool partial_;
  std::vector<Claim> claims_;
  std::string picture_;
};

/// The main function of a suite: runs the benchmarks with Google Benchmark's own options. With
/// `--claims=FILE` it then calls `claim`, prints the claims and writes them to FILE. Their picture
/// goes to a file of the same name with the extension `.svg`. Returns the exit status of the
/// process: 1 when a claim fails or has no value, or when a benchmark reported an error. With
/// `--benchmark_filter`, claims only what was run.
int run_suite(int argc, char** argv, void (*claim)(const Results& results, Claims& claims));

}  // namespace palimpsest::benchmarks
