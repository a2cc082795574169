#include "checkpoint/reverse/reverse.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>

#include "autodiff/enumerators.h"
#include "autodiff/in_use.h"
#include "checkpoint/reverse/agreement.h"
#include "checkpoint/reverse/chain_costs.h"
#include "checkpoint/reverse/journal_directory.h"
#include "checkpoint/reverse/reverse_run.h"
#include "checkpoint/stores/hash_stream.h"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;

void require(bool holds, const char* problem, const Where& where) {
  if (!holds) throw ArgumentError("reverse", problem, where);
}

bool is_lossy(const ReverseOptions& options) {
  return options.codec == ReverseCodec::zfp || options.codec == ReverseCodec::half;
}

void check_options(const ReverseOptions& options, const Where& where) {
  require(options.memory_budget > 0, "the memory budget is not positive; give bytes", where);
  require(options.largest_state >= 0 && options.tape_bytes_per_step >= 0,
          "a number of bytes is negative; give sizes", where);
  require(options.resume.empty() == options.tag.empty(),
          "resume and tag belong together; give a directory, and a tag that names the program, its "
          "version and its step function",
          where);
  require(!options.stop_after || !options.resume.empty(),
          "stop_after needs a journal to continue from; set resume", where);
  require(options.record_every.count() >= 0, "record_every is negative; give a time", where);
  require(options.sampled_segments >= 0, "sampled_segments is negative; give a number", where);
  require(options.resume.empty() || options.spill.empty() ||
              normal_path(options.spill) == normal_path(options.resume),
          "spill and resume name different directories; name the same one, because a run that "
          "continues needs its states on disk",
          where);
  using enum ReverseCodec;
  require_enumerator(options.codec, {none, zstd, half, zfp}, "[reverse] ReverseOptions::codec");
  const bool is_zfp = options.codec == ReverseCodec::zfp;
  require(is_zfp || (options.tolerance == 0 && options.codec_shape.empty()),
          "tolerance and codec_shape belong to ReverseCodec::zfp; leave them out", where);
  require(!options.check || !is_lossy(options),
          "check compares states bit by bit, which a lossy codec changes; use ReverseCodec::none "
          "or zstd",
          where);
  require(!options.sizes_change || options.codec == ReverseCodec::none || options.largest_state > 0,
          "the buffers of a codec are made for the largest state, which is not known with "
          "sizes_change; set largest_state too",
          where);
  require(!options.disk_costs || !options.spill.empty(),
          "disk_costs belong to a directory; set spill", where);
  if (options.disk_costs) require_valid(*options.disk_costs);
}

void check_chain(const ReverseOptions& options, ReverseChain& chain, const Where& where) {
  require(options.steps.has_value() != chain.has_done(),
          "the end of the chain is not clear; give either the number of steps or done", where);
  require(chain.has_segments() == (options.tape_bytes_per_step > 0),
          "reverse_segment and tape_bytes_per_step belong together; give both or none", where);
  require(chain.state().bytes() > 0 || options.sizes_change,
          "the state has no bytes; give a state that has, or set sizes_change if later ones have",
          where);
  const auto is_null = [](const NamedObject& named) { return named.object == nullptr; };
  require(std::ranges::none_of(chain.accumulated(), is_null) &&
              std::ranges::none_of(chain.inputs(), is_null),
          "an accumulated object or an input is null; make them by named", where);
  require(chain.adjoint() != nullptr ||
              (options.resume.empty() && (!is_lossy(options) || options.sampled_segments == 0)),
          "the bytes of the adjoint are needed and not known; give save_adjoint and load_adjoint, "
          "or give its type a member parts()",
          where);
}

/// All bits of a number, so that numbers that differ have texts that differ.
std::string exact_text(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", number);
  return text;
}

std::string hash_text(const StoredObject& object) {
  HashStream hash;
  object.save([&](std::span<const std::byte> piece) { hash.add(piece); });
  const auto [low, high] = hash.digest();
  return std::to_string(high) + "/" + std::to_string(low);
}

/// Lines that a journal and its run, and all processes of a group, must have in common.
std::vector<std::string> common_lines(const ReverseOptions& options, ReverseChain& chain) {
  const auto number = [](const char* name, auto value) {
    return std::string(name) + " " + std::to_string(value);
  };
  std::vector<std::string> lines{
      "tag '" + options.tag + "'",
      options.steps ? number("steps", *options.steps) : "an unknown number of steps",
      number("memory budget", options.memory_budget),
      number("tape bytes per step", options.tape_bytes_per_step),
      number("bytes of a state", std::max(chain.state().bytes(), options.largest_state)),
      number("spill", options.spill.empty() ? 0 : 1),
      number("sizes_change", options.sizes_change ? 1 : 0),
      number("codec", static_cast<int>(options.codec)),
      "tolerance " + exact_text(options.tolerance),
      number("sampled segments", is_lossy(options) ? options.sampled_segments : 0),
      number("check", options.check ? 1 : 0)};
  // First, because the parts of other processes have other sizes.
  if (options.group != nullptr) {
    lines.insert(lines.begin(), number("processes", options.group->size()));
  }
  return lines;
}

/// All lines that a journal and its run must have in common.
std::vector<std::string> identity_of(const ReverseOptions& options, ReverseChain& chain) {
  std::vector<std::string> lines = common_lines(options, chain);
  if (options.group != nullptr) {
    lines.push_back("rank " + std::to_string(options.group->rank()));
  }
  if (is_lossy(options) && options.disk_costs) {  // they decide which states are rounded
    lines.push_back("disk_costs " + exact_text(options.disk_costs->write) + " and " +
                    exact_text(options.disk_costs->read));
  }
  lines.push_back("state 0 with the hash " + hash_text(chain.state()));
  for (const std::size_t size : options.codec_shape) {
    lines.push_back("codec_shape " + std::to_string(size));
  }
  for (const NamedObject& object : chain.accumulated()) {
    lines.push_back("accumulated object " + object.name);
  }
  for (const NamedObject& object : chain.inputs()) {
    lines.push_back("input " + object.name + " with the hash " + hash_text(*object.object));
  }
  return lines;
}

/// Whether a run can continue from a record. A state that is damaged can be made again if the codec
/// is exact.
bool is_usable(const JournalRecord& record, ExtentFile& file, bool is_exact) {
  return std::ranges::all_of(record.entries, [&](const JournalEntry& entry) {
    using Kind = JournalEntry::Kind;
    const bool is_state =
        entry.kind == Kind::in_memory || entry.kind == Kind::on_disk || entry.kind == Kind::state;
    if (is_state && (is_exact || entry.kind == Kind::on_disk)) return true;
    return file.is_intact(entry.extent);
  });
}

/// Processes of a group that are at the same point of a run have the same digest.
std::uint64_t digest_of(const JournalRecord& record) { return hash_bytes(record.position); }

/// The record to continue from; null if there is none. All processes of a group take the same.
const JournalRecord* record_of(Journal& journal, bool is_exact, ReverseGroup* group) {
  const JournalRecord* record = nullptr;
  for (const JournalRecord& found : journal.found()) {
    if (record == nullptr && is_usable(found, journal.file(), is_exact)) record = &found;
  }
  if (record == nullptr && !journal.found().empty()) {
    throw FileError("[reverse] " + journal.file().path() +
                    " is damaged where both records of the journal need it; remove the directory "
                    "to start the run afresh");
  }
  if (group == nullptr) return record;
  std::int64_t next[] = {static_cast<std::int64_t>(journal.next())};
  take_largest(group, next);
  journal.set_next(static_cast<std::uint64_t>(next[0]));
  std::int64_t number[] = {record == nullptr ? 0 : static_cast<std::int64_t>(record->number)};
  group->least(number);
  if (number[0] == 0) return nullptr;
  const auto common = std::ranges::find(journal.found(), static_cast<std::uint64_t>(number[0]),
                                        &JournalRecord::number);
  const bool is_found = common != journal.found().end();
  const auto digest =
      static_cast<std::int64_t>(is_found ? digest_of(*common) >> 1 : std::uint64_t{0});
  std::int64_t digests[] = {digest, -digest, is_found ? 1 : 0};
  group->least(digests);
  if (digests[0] == -digests[1] && digests[2] == 1) return &*common;
  std::string own;
  for (const JournalRecord& found : journal.found()) {
    own += (own.empty() ? "" : " and ") + std::to_string(found.number);
    if (!is_usable(found, journal.file(), is_exact)) own += " (damaged)";
  }
  throw FileError("[reverse] " + journal.file().path() +
                  ": the journals of the processes have no record in common: process " +
                  std::to_string(group->rank()) + " has " + own +
                  ", and one process has no later one than " + std::to_string(number[0]) +
                  (digests[2] == 1 ? ", of another run" : "") +
                  "; remove the directories of all of them to start the run afresh");
}

/// The options of one process of a group: the least budget and the largest sizes of all, and a
/// directory of its own for the journal.
ReverseOptions options_in_group(ReverseOptions options, ReverseChain& chain) {
  ReverseGroup* const group = options.group.get();
  if (group == nullptr) return options;
  std::int64_t budget[] = {options.memory_budget};
  group->least(budget);
  options.memory_budget = budget[0];
  std::int64_t sizes[] = {chain.state().bytes(), options.largest_state,
                          options.tape_bytes_per_step};
  take_largest(group, sizes);
  options.largest_state = std::max(sizes[0], sizes[1]);
  options.tape_bytes_per_step = sizes[2];
  std::vector<std::string> lines = common_lines(options, chain);
  lines.push_back(options.resume.empty() ? "no journal" : "a journal");
  if (options.disk_costs) {
    lines.push_back("disk_costs " + exact_text(options.disk_costs->write) + " and " +
                    exact_text(options.disk_costs->read));
  }
  group->require_same(lines);
  if (options.resume.empty()) return options;
  options.resume += "/rank-" + std::to_string(group->rank());
  if (!options.spill.empty()) {
    options.spill = options.resume;
    std::error_code error;
    fs::create_directories(options.spill, error);
  }
  return options;
}

/// The states that are kept are those of the schedule that was begun. A plan may differ in another
/// process: a codec of another version may take more memory.
void require_same_plan(const JournalPosition& begun, const ReversePlan& plan,
                       const ReverseOptions& options, const Where& where) {
  const JournalPosition here = position_before(plan);
  if (begun.snapshots == here.snapshots && begun.segment == here.segment &&
      begun.slot_bytes == here.slot_bytes && begun.planned_write_cost == here.planned_write_cost) {
    return;
  }
  const auto text = [](const JournalPosition& planned) {
    const std::string disk =
        planned.planned_write_cost < 0
            ? "none on disk"
            : "states on disk that cost " + std::to_string(planned.planned_write_cost) + " steps";
    return std::to_string(planned.snapshots) + " states of " + std::to_string(planned.slot_bytes) +
           " bytes in memory, " + disk + ", and segments of " + std::to_string(planned.segment) +
           " steps";
  };
  throw ArgumentError("reverse",
                      "the run that the journal in '" + options.resume +
                          "' is of was planned with " + text(begun) +
                          ", and this process would have " + text(here) +
                          "; continue with the versions of the libraries that began it, or remove "
                          "the directory to start afresh",
                      where);
}

/// The bytes of the accumulated objects before the first step.
std::vector<Bytes> sizes_before_steps(const JournalRecord* record, ReverseChain& chain) {
  std::vector<Bytes> sizes;
  for (const NamedObject& object : chain.accumulated()) sizes.push_back(object.object->bytes());
  if (record == nullptr) return sizes;
  for (const JournalEntry& entry : record->entries) {
    if (entry.kind == JournalEntry::Kind::accumulated) sizes[entry.number] = entry.charged;
  }
  return sizes;
}

/// The record, if the accumulated objects have the sizes that they began with or those of the
/// record. A finished run with others is another run.
const JournalRecord* with_fitting_objects(const JournalRecord* record,
                                          const ReverseOptions& options, ReverseChain& chain,
                                          const Where& where) {
  if (record == nullptr) return nullptr;
  const JournalEntry* other = nullptr;
  for (const JournalEntry& entry : record->entries) {
    if (entry.kind != JournalEntry::Kind::accumulated) continue;
    const Bytes bytes = chain.accumulated()[entry.number].object->bytes();
    if (bytes != entry.extent.bytes && bytes != entry.charged) other = &entry;
  }
  if (record->is_finished) {
    return holds_for_all(options.group.get(), other == nullptr) ? record : nullptr;
  }
  if (other == nullptr) return record;
  const NamedObject& object = chain.accumulated()[other->number];
  throw ArgumentError("reverse",
                      "the accumulated object '" + object.name + "' has " +
                          std::to_string(object.object->bytes()) + " bytes; in the journal in '" +
                          options.resume + "' it began with " + std::to_string(other->charged) +
                          " bytes and has " + std::to_string(other->extent.bytes) +
                          "; give it the size that it begins with",
                      where);
}

/// Calls `work`, which all processes of the group call. It succeeds in all of them or throws in all
/// of them.
template <class F>
auto with_group(ReverseGroup* group, F work) {
  if (group == nullptr) return work();
  std::optional<decltype(work())> result;
  std::exception_ptr failure;
  try {
    result = work();
  } catch (...) {
    failure = std::current_exception();
  }
  group->end(failure);
  return std::move(*result);
}

}  // namespace

void detail::throw_size_of_object(Bytes object, Bytes stored) {
  throw ArgumentError("[reverse] an object of " + std::to_string(object) +
                      " bytes cannot be made from " + std::to_string(stored) +
                      " bytes; give objects whose ranges can be resized, or keep their sizes");
}

struct ReverseRunner::Parts {
  ReverseOptions own_options;  // of this process
  Where where;
  ReverseReport report;
  InUse in_use{"ReverseDriver"};
  std::optional<ChainCosts> measured = {};  // once, so that forecasts and budgets hold for the run

  bool run(ReverseChain& chain);
  ReverseForecast forecast(ReverseChain& chain);
  /// Measures what steps and the disk cost, once for states of one size. Returns the calls of
  /// `advance` that this took.
  std::uint64_t measure(const ReverseOptions& options, ReverseChain& chain);
};

ReverseRunner::ReverseRunner(ReverseOptions options, Where where) {
  check_options(options, where);
  parts_ = std::make_shared<Parts>(Parts{std::move(options), where, {}});
}

ReverseRunner::~ReverseRunner() = default;
ReverseRunner::ReverseRunner(ReverseRunner&&) noexcept = default;
ReverseRunner& ReverseRunner::operator=(ReverseRunner&&) noexcept = default;

const std::shared_ptr<ReverseRunner::Parts>& ReverseRunner::parts() const {
  if (parts_ != nullptr) return parts_;
  throw ArgumentError("[reverse] this driver was moved from; use the one that it was moved to");
}

const ReverseReport& ReverseRunner::report() const { return parts()->report; }

bool ReverseRunner::run(ReverseChain& chain) {
  const std::shared_ptr<Parts> all = parts();
  const InUse::Use use(all->in_use, call_in_progress, "ReverseDriver::run", &all->where);
  return with_group(all->own_options.group.get(), [&] { return all->run(chain); });
}

ReverseForecast ReverseRunner::forecast(ReverseChain& chain) const {
  const std::shared_ptr<Parts> all = parts();
  const InUse::Use use(all->in_use, call_in_progress, "ReverseDriver::forecast", &all->where);
  return with_group(all->own_options.group.get(), [&] { return all->forecast(chain); });
}

std::uint64_t ReverseRunner::Parts::measure(const ReverseOptions& options, ReverseChain& chain) {
  const Bytes bytes = measured_state_bytes(options, chain);
  const bool is_known = measured && measured->state_bytes == bytes;
  if (holds_for_all(options.group.get(), is_known)) return 0;
  measured = measure_costs(options, chain);
  return measured->steps_advanced;
}

bool ReverseRunner::Parts::run(ReverseChain& chain) {
  report = {};
  check_chain(own_options, chain, where);
  const ReverseOptions options = options_in_group(own_options, chain);
  const StoredObject& state = chain.state();
  const auto codec = make_snapshot_codec(options, state.dtype(), state.header_bytes(), where);
  std::optional<Journal> journal;
  const JournalRecord* record = nullptr;
  if (!options.resume.empty()) {
    journal.emplace(reverse_journal, options.resume, identity_of(options, chain), where);
    record = record_of(*journal, codec == nullptr || codec->is_exact(), options.group.get());
    record = with_fitting_objects(record, options, chain, where);
  }
  const auto costs = [&] {
    if (record != nullptr) {
      const auto position = record->position_as<JournalPosition>();
      return DiskCosts{position.write_cost, position.read_cost};
    }
    if (options.disk_costs) return *options.disk_costs;
    report.steps_advanced = measure(options, chain);
    return measured->disk;
  };
  const ReversePlan plan =
      plan_reversal(options, chain, codec.get(), sizes_before_steps(record, chain), costs, where);
  ReverseRun run(options, where, chain, plan, codec.get(), journal ? &*journal : nullptr, report);
  bool finished = false;
  try {
    if (record != nullptr) {
      const auto position = record->position_as<JournalPosition>();
      if (!record->is_finished) require_same_plan(position, plan, options, where);
      journal->continue_from(*record);
      report.resumed_at =
          position.current == JournalPosition::none ? position.left : position.current;
      if (!run.continue_from(*record)) {
        throw FileError("[reverse] " + journal->file().path() +
                        " is damaged; remove the directory to start the run afresh");
      }
    } else {
      if (journal) journal->start();
      run.begin();
    }
    finished = run.run();
  } catch (...) {
    run.finish_report();
    throw;
  }
  run.finish_report();
  return finished;
}

ReverseForecast ReverseRunner::Parts::forecast(ReverseChain& chain) {
  check_chain(own_options, chain, where);
  const ReverseOptions options = options_in_group(own_options, chain);
  const StoredObject& state = chain.state();
  const auto codec = make_snapshot_codec(options, state.dtype(), state.header_bytes(), where);
  if (!options.resume.empty() && !options.spill.empty()) {
    // A run would make the directory of its journal.
    std::error_code error;
    fs::create_directories(options.spill, error);
  }
  double step_seconds = 0;
  const auto costs = [&] {
    if (options.disk_costs) return *options.disk_costs;
    measure(options, chain);
    step_seconds = measured->step_seconds;
    return measured->disk;
  };
  const ReversePlan plan =
      plan_reversal(options, chain, codec.get(), sizes_before_steps(nullptr, chain), costs, where);
  ReverseForecast forecast{.steps = plan.steps.value_or(0),
                           .segment_steps = plan.segment,
                           .states_in_memory = plan.snapshots,
                           .bytes = plan.bytes(options.tape_bytes_per_step),
                           .step_seconds = step_seconds};
  if (!plan.steps) return forecast;
  const auto schedule = make_chain_schedule(plan.units(), plan.snapshots, plan.costs);
  const auto seed_and_tapes = *plan.units() + 1;
  // The last unit may be shorter; it is advanced over only once.
  forecast.steps_advanced_again =
      (schedule->forward_units() - seed_and_tapes - *plan.units()) * plan.segment;
  forecast.disk_writes = schedule->writes();
  forecast.disk_reads = schedule->reads();
  forecast.bytes_written = static_cast<Bytes>(forecast.disk_writes) * plan.largest_state;
  forecast.bytes_read = static_cast<Bytes>(forecast.disk_reads) * plan.largest_state;
  const double advances = static_cast<double>(*plan.steps + forecast.steps_advanced_again);
  forecast.seconds = step_seconds * advances;
  if (plan.step_costs) {
    forecast.seconds +=
        step_seconds * (plan.step_costs->write * static_cast<double>(forecast.disk_writes) +
                        plan.step_costs->read * static_cast<double>(forecast.disk_reads));
  }
  return forecast;
}

}  // namespace palimpsest
