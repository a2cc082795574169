#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/reverse/extent_file.h"
#include "checkpoint/reverse/journal_directory.h"

namespace palimpsest {

/// The operation that a journal belongs to. `mark` begins its records. `remedy` is what to do where
/// an unfinished run needs the directory.
struct JournalKind {
  std::string_view operation;
  std::string_view mark;
  std::string_view remedy = "name another directory";
};
inline constexpr JournalKind reverse_journal{"reverse", "palimpsest journal 4\n"};

/// The entry of an object in a record. The object's bytes are in the journal's data file.
struct JournalEntry {
  enum class Kind : std::uint32_t {
    in_memory,  ///< a kept state; `number` is its slot
    on_disk,    ///< likewise
    state,      ///< the current state
    adjoint,
    accumulated,  ///< `number` counts them
    hashes,
    sample,     ///< of the estimate of errors
    block,      ///< the kept state in a loop's block for transfers
    last,       ///< the last state that a step of a loop reads
    result,     ///< of a loop's forward part (0) or of its backward part (1)
    outputs,    ///< of the steps from `step` to before `end` of a loop
    inputs,     ///< likewise, the adjoints of its inputs
    untouched,  ///< captured values of a loop whose adjoints no step has changed
  };
  Kind kind;
  std::uint32_t number = 0;
  std::uint64_t step = 0;
  std::uint64_t end = 0;
  std::uint64_t is_encoded = 0;
  Bytes charged = 0;  ///< of memory, of a kept state; only by bytes. Of an accumulated object, its
                      ///< bytes before the first step
  Extent extent = {};
};

struct JournalRecord {
  std::uint64_t number = 0;
  bool is_finished = false;         ///< there is nothing to continue
  std::vector<std::byte> position;  ///< how far the run is: a struct of numbers
  std::vector<JournalEntry> entries;

  template <class Position>
    requires std::is_trivially_copyable_v<Position>
  Position position_as() const {
    internal_check(position.size() == sizeof(Position), "a record is of another kind of run");
    Position at;
    std::memcpy(&at, position.data(), sizeof at);
    return at;
  }
};

/// The journal of a run in a directory that belongs to it alone. A record is a file of its own,
/// which appears under its name when all of it is on the disk. The two last records are kept, with
/// everything that they refer to. The one before serves when the last one is damaged. It also
/// serves when another process of a group does not have the last one yet.
///
/// The directory has these files:
///
/// - `palimpsest-journal.lock` is locked while a process uses the directory.
/// - `palimpsest-journal.data` has the bytes of states and other objects.
/// - `palimpsest-journal-<number>.record` is a record, with a hash of its content.
class Journal {
 public:
  /// Locks the directory, which is made if it is missing. `identity` are lines that describe the
  /// run, each a name and a value. Throws `EnvironmentError` if another process uses it, and
  /// `FileError`, also for records of another version.
  Journal(const JournalKind& kind, const std::string& directory, std::vector<std::string> identity,
          Where where);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  ExtentFile& file() { return *file_; }
  /// The records that can be read, the last one first. At most two. Throws `ArgumentError` if they
  /// are of another run, and `FileError` if there are records, but none that can be read.
  const std::vector<JournalRecord>& found() const { return found_; }
  /// Continues from one of the records found, and forgets the later ones.
  void continue_from(const JournalRecord& record);
  /// Forgets all records.
  void start();
  /// The number of the next record. Processes that run together give a record the same number.
  std::uint64_t next() const { return next_; }
  void set_next(std::uint64_t number) { next_ = number; }
  /// Adds a record. Its extents must be in the file. Then the record before the last one is
  /// forgotten.
  template <class Position>
    requires std::is_trivially_copyable_v<Position>
  void add(const Position& position, bool is_finished, std::vector<JournalEntry> entries) {
    const auto bytes = std::as_bytes(std::span(&position, 1));
    add_record({.is_finished = is_finished,
                .position = {bytes.begin(), bytes.end()},
                .entries = std::move(entries)});
  }
  /// The last record that this object has added or continues from; null if there is none.
  const JournalRecord* last() const { return kept_.empty() ? nullptr : &kept_.back(); }
  /// Forgets all records but the last one, and makes the file as small as possible.
  void finish();

  /// The last record in a directory that can be read, if there is any. Needs no lock.
  static std::optional<JournalRecord> last_in(const JournalKind& kind,
                                              const std::string& directory);

 private:
  void add_record(JournalRecord record);
  void read_records();
  std::optional<JournalRecord> read_record(const std::string& path, bool& is_other);
  void forget(const JournalRecord& record);
  std::string path_of(std::uint64_t number) const;

  JournalKind kind_;
  std::string directory_;
  std::vector<std::string> identity_;
  Where where_;
  std::unique_ptr<DirectoryLock> lock_;
  int data_ = -1;
  std::unique_ptr<ExtentFile> file_;
  std::vector<JournalRecord> found_;
  std::vector<JournalRecord> kept_;  // the last one last
  std::uint64_t next_ = 1;
};

}  // namespace palimpsest
