#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/checkpoint/reverse/resumed.h"
#include "tests/temporary_directory.h"

namespace reverse_group_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

/// Two threads in place of two processes. When one gives up, so does the other one.
struct Pair {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<double> results[2];  // of this round and the one before
  int waiting = 0;
  std::uint64_t round = 0;
  bool given_up = false;

  void give_up() {
    const std::lock_guard lock(mutex);
    given_up = true;
    changed.notify_all();
  }
  void agree(std::vector<double>& numbers) {
    std::unique_lock lock(mutex);
    if (given_up) throw std::runtime_error("the other one has given up");
    const std::uint64_t mine = round;
    std::vector<double>& least = results[mine % 2];
    if (waiting == 0) least = numbers;
    for (std::size_t i = 0; i < numbers.size(); ++i) least[i] = std::min(least[i], numbers[i]);
    if (++waiting == 2) {
      waiting = 0;
      ++round;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return round != mine || given_up; });
    if (round == mine) throw std::runtime_error("the other one has given up");
    numbers = least;
  }
};

class Member final : public ReverseGroup {
 public:
  Member(Pair& pair, int rank) : pair_(pair), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  void least(std::span<std::int64_t> numbers) override { agree(numbers); }
  void least(std::span<double> numbers) override { agree(numbers); }
  void require_same(std::span<const std::string> lines) override {
    double hash = 0;
    for (const std::string& line : lines) {
      hash = 31 * std::fmod(hash, 1e9) + static_cast<double>(std::hash<std::string>()(line) % 9973);
    }
    std::vector<double> least{hash, -hash};
    pair_.agree(least);
    if (least[0] != -least[1]) throw std::runtime_error("the other one gave other lines");
  }
  void end(const std::exception_ptr& failure) override {
    if (failure != nullptr) {
      pair_.give_up();
      std::rethrow_exception(failure);
    }
    std::vector<double> none{0};
    pair_.agree(none);
  }

 private:
  template <class Number>
  void agree(std::span<Number> numbers) {
    std::vector<double> all(numbers.begin(), numbers.end());
    pair_.agree(all);
    std::ranges::transform(all, numbers.begin(), [](double x) { return static_cast<Number>(x); });
  }
  Pair& pair_;
  int rank_;
};

/// Runs a row in each of two threads, until the one with rank 1 throws. `prepare` changes its
/// functions.
std::vector<Found> found_by_two(int way, const std::string& directory,
                                const std::function<void(ReverseFunctions<Numbers>&)>& prepare) {
  Pair pair;
  std::vector<Found> found(2);
  const auto run = [&](int rank) {
    const std::size_t size = rank == 0 ? 40 : 30;
    ReverseOptions options = resumed_options(way, 60, size, directory + "/" + std::to_string(rank));
    options.memory_budget += 1000 * rank;
    options.largest_state = 400;
    options.memory_budget += 10'000;
    options.group = std::make_shared<Member>(pair, rank);
    Row row{.steps = 60};
    ReverseFunctions<Numbers> functions = row.functions(options.steps.has_value());
    functions.save_adjoint = [](const Numbers& adjoint) {
      const auto bytes = std::as_bytes(std::span(adjoint));
      return std::vector(bytes.begin(), bytes.end());
    };
    functions.load_adjoint = [](std::span<const std::byte> bytes) {
      Numbers adjoint(bytes.size() / sizeof(double));
      std::memcpy(adjoint.data(), bytes.data(), bytes.size());
      return adjoint;
    };
    if (rank == 1) prepare(functions);
    try {
      ReverseDriver driver(functions, options);
      Numbers u = row.start(size);
      auto adjoint = driver.run(u);
      found[static_cast<std::size_t>(rank)] = {std::move(adjoint), row.loss, row.gradient,
                                               driver.report()};
    } catch (const std::runtime_error&) {
      pair.give_up();
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return found;
}

}  // namespace

TEST_CASE("reverse: processes of a group keep the same states and continue from the same record") {
  for (const int way : {0, 1}) {
    const TemporaryDirectory directory(quick_folder());
    std::vector<Found> found(2);
    int runs = 0;
    for (; !found[0].adjoint || !found[1].adjoint; ++runs) {
      REQUIRE(runs < 100);
      found =
          found_by_two(way, directory.path(), [calls = 25 + runs](ReverseFunctions<Numbers>& row) {
            row.advance = [calls, advance = row.advance](Numbers& u, std::uint64_t n) mutable {
              if (calls-- == 0) throw std::runtime_error("interrupted");
              advance(u, n);
            };
          });
    }
    CAPTURE(way, runs);
    CHECK(runs > 3);
    CHECK(found[0] == plainly(60, 40));
    CHECK(found[1] == plainly(60, 30));
    CHECK(found[0].report.resumed_at == found[1].report.resumed_at);
    CHECK(found[0].report.budget == found[1].report.budget);
  }
}

TEST_CASE("reverse: processes of a group may have different accumulated objects") {
  for (const int way : {0, 1}) {
    const TemporaryDirectory directory(quick_folder());
    const auto run = [&](int calls) {
      return found_by_two(way, directory.path(), [calls](ReverseFunctions<Numbers>& row) {
        row.accumulated = {};
        row.advance = [calls, advance = row.advance](Numbers& u, std::uint64_t n) mutable {
          if (calls-- == 0) throw std::runtime_error("interrupted");
          advance(u, n);
        };
      });
    };
    CAPTURE(way);
    CHECK(!run(40)[0].adjoint);
    for (const bool again : {false, true}) {
      const std::vector<Found> found = run(-1);
      CHECK(found[0].report.resumed_at.has_value());
      CHECK(found[0] == plainly(60, 40));
      REQUIRE(found[1].adjoint.has_value());
      CHECK(same_bits(*found[1].adjoint, *plainly(60, 30).adjoint));
      CHECK((found[0].report.steps_advanced == 0) == again);
    }
  }
}

TEST_CASE("reverse: a process that is killed in its last record but one has one in common") {
  for (const int way : {0, 1}) {
    const TemporaryDirectory directory(quick_folder());
    bool is_interrupted = false;
    bool is_reversed = false;
    found_by_two(way, directory.path(), [&](ReverseFunctions<Numbers>& row) {
      row.reverse = [&, reverse = row.reverse](Numbers& u, Numbers& a, std::uint64_t n) {
        reverse(u, a, n);
        is_reversed = n == 0;
      };
      row.save_adjoint = [&, save = row.save_adjoint](const Numbers& adjoint) {
        if (!is_reversed) return save(adjoint);
        // The other one has time to add its last record.
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        is_interrupted = true;
        throw std::runtime_error("interrupted");
      };
    });
    CAPTURE(way);
    CHECK(is_interrupted);
    const std::vector<Found> found = found_by_two(way, directory.path(), [](auto&) {});
    CHECK(found[0] == plainly(60, 40));
    CHECK(found[1] == plainly(60, 30));
  }
}

}  // namespace reverse_group_test
