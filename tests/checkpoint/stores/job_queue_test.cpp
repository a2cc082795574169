#include "checkpoint/stores/job_queue.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace job_queue_test {

using namespace palimpsest;

TEST_CASE("jobs: one at a time, in the order they were added") {
  JobQueue queue;
  std::vector<std::uint32_t> order;
  std::atomic<int> at_once = 0;
  bool alone = true;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    queue.add(i % 7, [&, i] {
      alone = alone && ++at_once == 1;
      order.push_back(i);
      --at_once;
    });
    if (i % 100 == 0) queue.wait(3);
  }
  queue.wait_all();
  CHECK(alone);
  REQUIRE(order.size() == 1000);
  for (std::uint32_t i = 0; i < 1000; ++i) CHECK(order[i] == i);
}

TEST_CASE("jobs: they are done also when nobody waits") {
  std::atomic<bool> done = false;
  JobQueue queue;
  queue.add(1, [&] { done = true; });
  for (int i = 0; i < 10'000 && !done; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(done);
}

TEST_CASE("jobs: one thread does them, and nothing is printed") {
  const palimpsest::TemporaryFile file;
  const int printed = dup(STDERR_FILENO);
  REQUIRE(std::freopen(file.path().c_str(), "w", stderr) != nullptr);
  {
    const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
    JobQueue queue;
    int done = 0;
    queue.add(1, [&] { ++done; });
    queue.add(1, [] { throw std::runtime_error("of key 1"); });
    queue.add(1, [&] { done += 100; });
    queue.add(2, [&] { ++done; });
    CHECK(done == 2);
    CHECK_THROWS_WITH(queue.wait(1), "of key 1");
    queue.wait_all();
  }
  std::fflush(stderr);
  dup2(printed, STDERR_FILENO);
  close(printed);
  CHECK(file.read().empty());
}

TEST_CASE("jobs: those that follow a failure wait for somebody to be told") {
  JobQueue queue;
  int done = 0;
  queue.add(1, [] { throw std::runtime_error("of key 1"); });
  queue.add(1, [&] { done += 1; });
  queue.add(2, [&] { done += 10; });
  CHECK_NOTHROW(queue.wait(2));
  CHECK_THROWS_WITH(queue.wait(1), "of key 1");
  CHECK(done == 10);
  queue.add(1, [&] { done += 100; });
  CHECK_NOTHROW(queue.wait(1));
  CHECK(done == 110);

  queue.add(1, [] { throw std::runtime_error("again"); });
  queue.add(2, [] { throw std::runtime_error("again"); });
  CHECK_THROWS_WITH(queue.wait_all(), "again");
  CHECK_NOTHROW(queue.wait_all());
}

TEST_CASE("jobs: a queue that goes leaves out what has not begun") {
  std::atomic<int> done = 0;
  std::atomic<bool> begun = false;
  {
    JobQueue queue;
    queue.add(1, [&] {
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++done;
    });
    while (!begun) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) queue.add(1, [&] { ++done; });
  }
  CHECK(done == 1);
}

TEST_CASE("jobs: end wherever one waits for them, however few the threads") {
  const int threads = GENERATE(1, 2);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(threads));
  std::atomic<int> done = 0;
  // Each worker holds its thread while it waits for jobs.
  const auto run = [&](JobQueue& queue, std::uint32_t key) {
    for (int i = 0; i < 20; ++i) {
      queue.add(key, [&] { ++done; });
      if (i % 3 == 0) queue.wait(key);
    }
    queue.wait(key);
  };
  JobQueue queue;
  run(queue, 1);
  tbb::task_arena arena(threads);
  arena.execute([&] {
    run(queue, 2);
    tbb::this_task_arena::isolate([&] { run(queue, 3); });
    tbb::parallel_for(0u, 50u, [&](std::uint32_t i) { run(queue, i % 8); });
    tbb::parallel_for(0u, 8u, [&](std::uint32_t) {
      JobQueue own;
      run(own, 0);
    });
  });
  queue.wait_all();
  CHECK(done == 20 * (3 + 50 + 8));
}

TEST_CASE("jobs: several threads of the caller's") {
  JobQueue queue;
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t key = 0; key < 4; ++key) {
    threads.emplace_back([&, key] {
      for (int i = 0; i < 300; ++i) {
        queue.add(key, [&, i] {
          ++done;
          if (i % 50 == 7) throw std::runtime_error(std::to_string(key));
        });
        if (i % 50 == 7) {
          try {
            queue.wait(key);
          } catch (const std::runtime_error& error) {
            if (error.what() == std::to_string(key)) ++done;
          }
        }
      }
      queue.wait(key);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(done == 4 * (300 + 6));
}

}  // namespace job_queue_test
