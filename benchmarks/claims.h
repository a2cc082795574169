#pragma once

#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace palimpsest::benchmarks {

/// What the benchmarks of one suite measured. A benchmark is named by its function and arguments,
/// as in `chain/1000`; of several repetitions the fastest counts.
class Results {
 public:
  struct Run {
    double seconds = 0;      ///< wall time of one iteration
    double cpu_seconds = 0;  ///< the benchmark's thread's processor time of one iteration
    std::map<std::string, double> counters;
  };

  /// `partial`: some benchmarks were left out on purpose.
  explicit Results(bool partial = false) : partial_(partial) {}

  bool partial() const { return partial_; }
  void add(const std::string& benchmark, Run run);
  /// Throws `std::out_of_range` naming the benchmark or counter when it was not measured; of a
  /// benchmark left out NaN.
  double seconds(const std::string& benchmark) const;
  double cpu_seconds(const std::string& benchmark) const;
  double counter(const std::string& benchmark, const std::string& name) const;

 private:
  /// Null for one left out.
  const Run* run(const std::string& benchmark) const;

  bool partial_;
  std::map<std::string, Run> runs_;
};

/// The least number of several that were measured. NaN, of what could not be measured, does not
/// count; the result is NaN when there is nothing else.
double least_of(std::span<const double> measured);

/// The figures that documentation asserts, each against what this run measured.
class Claims {
 public:
  /// `partial`: claims of NaN, which is what was not run, are left out instead of failing.
  explicit Claims(bool partial = false) : partial_(partial) {}

  /// Claims that `subject` is at most, or at least, `target`. A claim of NaN does not hold: there
  /// is no value. Make times comparable across machines: claim a ratio.
  void at_most(const std::string& subject, double target, double measured, std::string unit);
  void at_least(const std::string& subject, double target, double measured, std::string unit);
  /// Gives a picture, an SVG document, that belongs to the claims.
  void draw(std::string picture) { picture_ = std::move(picture); }

  bool all_hold() const;
  /// The picture, or nothing.
  const std::string& picture() const { return picture_; }
  /// An array of objects with the keys claim, target, measured, unit and holds.
  void write_json(std::ostream& stream) const;
  /// A table, one claim a line.
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

/// The main of a suite: runs the benchmarks with Google Benchmark's own options. With
/// `--claims=FILE` it then lets `claim` state the claims, prints them and writes them to FILE, and
/// their picture to one that ends in `.svg`. Returns the process's exit status: 1 when a claim does
/// not hold or has no value, or a benchmark reported an error. With `--benchmark_filter` only what
/// was run is claimed.
int run_suite(int argc, char** argv, void (*claim)(const Results& results, Claims& claims));

}  // namespace palimpsest::benchmarks
