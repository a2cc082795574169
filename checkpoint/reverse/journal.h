#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/reverse/extent_file.h"

namespace palimpsest {

/// The entry of an object in a record. The object's bytes are in the journal's data file.
struct JournalEntry {
  enum class Kind : std::uint32_t {
    in_memory,  ///< a kept state; `number` is its slot
    on_disk,    ///< likewise
    state,      ///< the current state
    adjoint,
    accumulated,  ///< `number` counts them
    hashes,
    sample,  ///< of the estimate of errors
  };
  Kind kind;
  std::uint32_t number = 0;
  std::uint64_t step = 0;
  std::uint64_t is_encoded = 0;
  Bytes charged = 0;  ///< of memory, of a kept state; only by bytes
  Extent extent = {};
};

/// How far a run is.
struct JournalPosition {
  enum class Phase : std::uint64_t { sweep, reversal, finished };
  Phase phase = Phase::sweep;
  std::uint64_t current = 0;       ///< number of the current state, or `none`
  std::uint64_t left = 0;          ///< steps to be reversed, once their number is known
  std::uint64_t length = 0;        ///< of the chain; 0 while unknown
  std::uint64_t actions = 0;       ///< of the schedule that are done: of the sweep, or of the rest
  std::uint64_t furthest = 0;      ///< the last state that was made
  std::uint64_t largest_kept = 0;  ///< bytes; only by bytes
  std::uint64_t repetitions = 0;   ///< likewise: how often a step is run, at most
  double write_cost = 0;           ///< of the disk, in steps
  double read_cost = 0;

  static constexpr std::uint64_t none = ~std::uint64_t{0};
};

struct JournalRecord {
  std::uint64_t number = 0;
  JournalPosition position;
  std::vector<JournalEntry> entries;
};

/// The journal of a run in a directory that belongs to it alone. A record is a file of its own,
/// which appears under its name when all of it is on the disk. The two last records are kept, with
/// everything that they refer to. The one before serves when the last one is damaged, or when
/// another process of a group does not have the last one yet.
///
/// - `palimpsest-journal.lock` is locked while a process uses the directory.
/// - `palimpsest-journal.data` has the bytes of states and other objects.
/// - `palimpsest-journal-<number>.record` is a record, with a hash of its content.
class Journal {
 public:
  /// Locks the directory, which is made if it is missing. `identity` are lines that describe the
  /// run, each a name and a value. Throws `EnvironmentError` if another process uses it, and
  /// `FileError`.
  Journal(const std::string& directory, std::vector<std::string> identity, Where where);
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
  void add(const JournalPosition& position, std::vector<JournalEntry> entries);
  /// Forgets all records but the last one, and makes the file as small as possible.
  void finish();

 private:
  struct Lock;
  void read_records();
  std::optional<JournalRecord> read_record(const std::string& path, bool& is_other);
  void forget(const JournalRecord& record);
  std::string path_of(std::uint64_t number) const;

  std::string directory_;
  std::vector<std::string> identity_;
  Where where_;
  std::unique_ptr<Lock> lock_;
  int data_ = -1;
  std::unique_ptr<ExtentFile> file_;
  std::vector<JournalRecord> found_;
  std::vector<JournalRecord> kept_;  // the last one last
  std::uint64_t next_ = 1;
};

}  // namespace palimpsest
