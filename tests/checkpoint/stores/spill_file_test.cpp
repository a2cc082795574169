#include "checkpoint/stores/spill_file.h"

#include <malloc.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "tests/catch.h"
#include "tests/checkpoint/stores/records.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

#include <rapidcheck/catch.h>

namespace spill_file_test {

using namespace palimpsest;
using tests::Record;
using tests::Sizes;

namespace {

/// Reads a record back from a slot.
Record read(SpillFile& file, std::uint32_t slot, std::uint64_t step, const Sizes& sizes) {
  Record record(sizes, 0);
  file.prefetch(slot, step, record.room());
  file.wait(slot);
  return record;
}

}  // namespace

TEST_CASE("spill: records of any pieces come back") {
  const TemporaryDirectory directory;
  const bool compress = GENERATE(false, true);
  const Sizes sizes = GENERATE(
      Sizes{{0}, {1}, {7}, {300'000, DType::f64}, {5}, {0}, {700'000, DType::f32}}, Sizes{{8}},
      Sizes{{256_KiB, DType::bf16}, {256_KiB}}, Sizes{{256_KiB + 1, DType::f64}}, Sizes{{0}},
      Sizes{}, Sizes(2000, {3, DType::f16}), Sizes(500, {1000}));
  SpillFile file(directory.path(), sizes, {.compress = compress});
  const Record first(sizes, 1);
  const Record second(sizes, 2);
  file.write(5, 40, first.bytes());
  file.write(0, 41, second.bytes());
  file.wait(5);
  file.wait(0);
  CHECK(read(file, 0, 41, sizes) == second);
  CHECK(read(file, 5, 40, sizes) == first);
  CHECK(read(file, 5, 40, sizes) == first);
  file.write(5, 42, second.bytes());
  CHECK(read(file, 5, 42, sizes) == second);
  CHECK(read(file, 0, 41, sizes) == second);
  CHECK(directory.files() == std::vector{file.path()});
}

TEST_CASE("spill: what is compressed takes less of the disk, what cannot be no more") {
  const TemporaryDirectory directory;
  const Sizes sizes{{1_MiB}};
  SpillFile plain(directory.path(), sizes);
  SpillFile packed(directory.path(), sizes, {.compress = true});
  const Record record(sizes, 3);
  for (SpillFile* file : {&plain, &packed}) {
    file->write(0, 0, record.bytes());
    file->finish();
    CHECK(read(*file, 0, 0, sizes) == record);
    CHECK(file->bytes_read() == file->bytes_written());
  }
  CHECK(plain.bytes_written() > 1_MiB);
  CHECK(plain.bytes_written() <= 1_MiB + 4 * 64);
  CHECK(packed.bytes_written() < 700_KiB);
  CHECK(packed.bytes_written() > 512_KiB);
}

TEST_CASE("spill: any calls in any order give what a map gives") {
  const TemporaryDirectory directory;
  rc::prop("as a map", [&] {
    const bool compress = *rc::gen::arbitrary<bool>();
    const auto sizes = *rc::gen::container<Sizes>(
        *rc::gen::inRange<std::size_t>(0, 6),
        rc::gen::construct<RecordPiece>(
            rc::gen::weightedOneOf<Bytes>(
                {{9, rc::gen::inRange<Bytes>(0, 3000)}, {1, rc::gen::just<Bytes>(270'000)}}),
            rc::gen::element(DType::f64, DType::f32, DType::bf16, DType::boolean)));
    struct Held {
      std::uint64_t step;
      unsigned seed;
    };
    struct Read {
      std::uint32_t slot;
      unsigned seed;
      Record into;
    };
    std::map<std::uint32_t, Held> model;
    std::deque<Record> given;  // a deque, because elements must not move
    std::deque<Read> reads;
    SpillFile file(directory.path(), sizes, {.compress = compress});
    const auto calls = *rc::gen::container<std::vector<unsigned>>(rc::gen::arbitrary<unsigned>());
    for (const unsigned call : calls) {
      const std::uint32_t slot = call / 16 % 9;
      if (call % 16 < 6) {
        given.emplace_back(sizes, call);
        model[slot] = {call / 7, call};
        file.write(slot, call / 7, given.back().bytes());
      } else if (call % 16 < 14 && model.contains(slot)) {
        reads.push_back({slot, model[slot].seed, Record(sizes, 0)});
        file.prefetch(slot, model[slot].step, reads.back().into.room());
      } else if (call % 16 == 14) {
        file.wait(slot);
        for (const Read& one : reads) {
          if (one.slot == slot) RC_ASSERT(one.into == Record(sizes, one.seed));
        }
      } else if (call % 16 == 15) {
        file.finish();
      }
    }
    file.finish();
    for (const Read& one : reads) RC_ASSERT(one.into == Record(sizes, one.seed));
    for (const auto& [slot, held] : model) {
      RC_ASSERT(read(file, slot, held.step, sizes) == Record(sizes, held.seed));
    }
  });
  CHECK(directory.files().empty());
}

TEST_CASE("spill: calls that cannot be meant") {
  const TemporaryDirectory directory;
  SpillFile file(directory.path(), {{4}, {8}});
  Record record({{4}, {8}}, 1);
  file.write(2, 7, record.bytes());
  check_error([&] { file.write(0, 0, Record({{4}}, 1).bytes()); }, {"[spill]", "2 pieces, not 1"});
  check_error([&] { file.write(0, 0, Record({{4}, {9}}, 1).bytes()); },
              {"piece 1", "8 bytes, not 9"});
  check_error([&] { file.prefetch(1, 7, record.room()); }, {"slot 1 holds nothing", "step 7"});
  check_error([&] { file.prefetch(9, 7, record.room()); }, {"slot 9 holds nothing"});
  check_error([&] { file.prefetch(2, 8, record.room()); }, {"slot 2 holds step 7, not step 8"});
  CHECK_NOTHROW(file.finish());
}

TEST_CASE("spill: the file goes with its owner, also when an exception passes") {
  const TemporaryDirectory directory;
  const Sizes sizes{{2_MiB}};
  const Record record(sizes, 1);
  try {
    SpillFile file(directory.path(), sizes);
    for (std::uint32_t slot = 0; slot < 10; ++slot) file.write(slot, slot, record.bytes());
    CHECK(directory.files().size() == 1);
    throw 1;
  } catch (int) {
  }
  CHECK(directory.files().empty());
}

TEST_CASE("spill: a relative directory is meant from where the program is at first") {
  const TemporaryDirectory directory;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  std::optional<SpillFile> file(std::in_place, ".", Sizes{{8}});
  std::filesystem::current_path(before);
  CHECK(directory.files().size() == 1);
  file.reset();
  CHECK(directory.files().empty());
}

TEST_CASE("spill: several files of one directory, each with threads of its own and of TBB's") {
  const TemporaryDirectory directory;
  const int threads = GENERATE(1, 2);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(threads));
  const Sizes sizes{{70'000, DType::f32}, {3}};
  const auto run = [&](SpillFile& file, std::uint32_t first) {
    const Record record(sizes, first);
    for (int i = 0; i < 20; ++i) {
      for (std::uint32_t slot = first; slot < first + 3; ++slot) {
        file.write(slot, slot, record.bytes());
      }
      for (std::uint32_t slot = first; slot < first + 3; ++slot) {
        if (read(file, slot, slot, sizes) != record) throw std::runtime_error("not the same");
      }
    }
  };
  SpillFile shared(directory.path(), sizes, {.compress = true});
  const auto both = [&](std::uint32_t first) {
    SpillFile own(directory.path(), sizes);
    run(shared, first);
    run(own, first);
  };
  std::vector<std::thread> callers;
  for (std::uint32_t i = 0; i < 3; ++i) {
    callers.emplace_back([&, i] {
      tbb::task_arena arena(threads);
      arena.execute([&] {
        tbb::this_task_arena::isolate([&] { both(100 * i); });
        tbb::parallel_for(1u, 5u, [&](std::uint32_t k) { both(100 * i + 3 * k); });
      });
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK_NOTHROW(shared.finish());
  CHECK(directory.files() == std::vector{shared.path()});
}

TEST_CASE("spill: it takes no more memory than it says") {
  const TemporaryDirectory directory;
  const bool compress = GENERATE(false, true);
  const Sizes sizes(10, {50'000, DType::f32});
  const Record record(sizes, 1);
  constexpr std::uint32_t slots = 500;
  constexpr std::uint32_t under_way = 50;
  // Allocates what a process allocates only once.
  {
    SpillFile(directory.path(), sizes, {.compress = compress}).write(0, 0, record.bytes());
  }

  const auto allocated = [] {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<Bytes>(info.uordblks + info.hblkhd);
  };
  const Bytes predicted = SpillFile::memory_bytes(slots, sizes, under_way, {compress});
  const Bytes before = allocated();
  SpillFile file(directory.path(), sizes, {compress});
  Bytes most = 0;
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    file.write(slot, slot, record.bytes());
    most = std::max(most, allocated() - before);
    if (slot % under_way == 0) file.finish();
  }
  CAPTURE(predicted);
  CHECK(most <= predicted);
  CHECK(predicted < (compress ? 2_MiB : 64_KiB));
}

}  // namespace spill_file_test
