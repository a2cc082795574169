#include "checkpoint/reverse/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <ranges>
#include <string_view>
#include <system_error>
#include <utility>

#include "autodiff/error.h"
#include "checkpoint/reverse/journal_bytes.h"
#include "checkpoint/reverse/journal_directory.h"
#include "checkpoint/stores/transfer.h"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_prefix = "palimpsest-journal";
constexpr std::string_view record_suffix = ".record";

/// Nothing may be concluded from a file that cannot be read now.
[[noreturn]] void throw_unreadable(std::string_view operation, const std::string& path, int error) {
  throw FileError("[" + std::string(operation) + "] " + path + " cannot be read: " +
                  std::system_category().message(error) + "; run again to continue");
}

std::vector<std::byte> content_of(std::string_view operation, const std::string& path) {
  const OpenFile file(path, O_RDONLY | O_NONBLOCK);  // does not wait for the writer of a pipe
  if (file.get() < 0 && errno != ENOENT) throw_unreadable(operation, path, errno);
  struct stat status;
  if (file.get() < 0 || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::vector<std::byte> content(static_cast<std::size_t>(status.st_size));
  const iovec piece{content.data(), content.size()};
  const Transfer done = read_at(file.get(), 0, {&piece, 1});
  if (done.error != 0) throw_unreadable(operation, path, done.error);
  content.resize(static_cast<std::size_t>(done.bytes));
  return content;
}

void replace_file(std::string_view operation, const std::string& path,
                  std::span<const std::byte> content) {
  const std::string part = path + ".part";
  int error = 0;
  {
    const OpenFile file(part, O_WRONLY | O_CREAT | O_TRUNC);
    const iovec piece{const_cast<std::byte*>(content.data()), content.size()};
    const Transfer done =
        file.get() < 0 ? Transfer{.error = errno} : write_at(file.get(), 0, {&piece, 1});
    error = done.error;
    if (error == 0 && fsync(file.get()) != 0) error = errno;
  }
  if (error == 0 && rename(part.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(part.c_str());
  const std::string problem =
      "[" + std::string(operation) + "] " + path + " cannot be written: " + reason_of(error);
  if (error == ENOSPC || error == EDQUOT) {
    throw EnvironmentError(problem + "; free disk space, and run again to continue");
  }
  throw FileError(problem + "; check the disk, and run again to continue");
}

/// The file of a record.
std::string path_in(const std::string& directory, std::uint64_t number) {
  return directory + "/" + std::string(file_prefix) + "-" + std::to_string(number) +
         std::string(record_suffix);
}

/// The number of a record, from the name of its file.
std::optional<std::uint64_t> number_in(std::string_view name) {
  const std::string prefix = std::string(file_prefix) + "-";
  if (!name.starts_with(prefix) || !name.ends_with(record_suffix)) return {};
  const std::string_view digits =
      name.substr(prefix.size(), name.size() - prefix.size() - record_suffix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return number;
}

/// The numbers of the records in a directory, the last one first.
std::vector<std::uint64_t> numbers_of_records(std::string_view operation,
                                              const std::string& directory) {
  std::vector<std::uint64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto number = number_in(entry->path().filename().native());
    if (number) numbers.push_back(*number);
  }
  const bool is_no_directory =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !is_no_directory) throw_unreadable(operation, directory, error.value());
  std::ranges::sort(numbers, std::greater());
  return numbers;
}

}  // namespace

Journal::Journal(const JournalKind& kind, const std::string& directory,
                 std::vector<std::string> identity, Where where)
    : kind_(kind), identity_(std::move(identity)), where_(where) {
  directory_ = normal_path(directory);
  make_directory(kind_.operation, directory_);
  lock_ = std::make_unique<DirectoryLock>(kind_.operation, directory_,
                                          std::string(file_prefix) + ".lock");
  const std::string path = directory_ + "/" + std::string(file_prefix) + ".data";
  OpenFile data(path, O_RDWR | O_CREAT);
  if (data.get() < 0) {
    throw FileError("[" + std::string(kind_.operation) + "] " + path +
                    " cannot be opened: " + reason_of(errno));
  }
  file_ = std::make_unique<ExtentFile>(data.get(), path, 0, kind_.operation);
  read_records();
  data_ = data.release();
}

Journal::~Journal() {
  if (data_ >= 0) close(data_);
}

std::string Journal::path_of(std::uint64_t number) const { return path_in(directory_, number); }

namespace {

struct ReadRecord {
  JournalRecord record;
  std::vector<std::string> identity;
};

/// Nothing if it is damaged. Throws `FileError` if it is whole, but of another version.
std::optional<ReadRecord> record_in(const JournalKind& kind, const std::string& path) {
  const std::vector<std::byte> content = content_of(kind.operation, path);
  Hash128 hash;
  if (content.size() < kind.mark.size() + sizeof hash) return {};
  const auto body = std::span(content).first(content.size() - sizeof hash);
  std::memcpy(&hash, content.data() + body.size(), sizeof hash);
  if (hash != hash_bytes_128(body)) return {};
  JournalReader reader(body);
  if (reader.text() != kind.mark) {
    throw FileError("[" + std::string(kind.operation) + "] " + path +
                    " was written by another version of the library, or for another kind of run; "
                    "finish that run with the version that began it, or remove the directory to "
                    "start afresh");
  }
  ReadRecord read;
  read.identity.resize(reader.number());
  for (std::string& line : read.identity) line = reader.text();
  read.record.number = reader.number();
  read.record.is_finished = reader.number() != 0;
  const std::string position = reader.text();
  const auto bytes = std::as_bytes(std::span(position));
  read.record.position.assign(bytes.begin(), bytes.end());
  read.record.entries.resize(reader.number());
  for (JournalEntry& entry : read.record.entries) entry = reader.value<JournalEntry>();
  return read;
}

}  // namespace

std::optional<JournalRecord> Journal::last_in(const JournalKind& kind,
                                              const std::string& directory) {
  for (const std::uint64_t number : numbers_of_records(kind.operation, directory)) {
    if (auto read = record_in(kind, path_in(directory, number))) return std::move(read->record);
  }
  return {};
}

std::optional<JournalRecord> Journal::read_record(const std::string& path, bool& is_other) {
  std::optional<ReadRecord> read = record_in(kind_, path);
  if (!read) return {};
  const std::vector<std::string>& identity = read->identity;
  is_other = read->record.is_finished && identity != identity_;
  if (is_other) return {};
  for (std::size_t i = 0; i < std::max(identity.size(), identity_.size()); ++i) {
    const std::string there = i < identity.size() ? identity[i] : "nothing";
    const std::string here = i < identity_.size() ? identity_[i] : "nothing";
    if (there == here) continue;
    throw ArgumentError(kind_.operation,
                        "the journal in '" + directory_ + "' is of another run: it has " + there +
                            ", and this run has " + here + "; finish that run, or " +
                            std::string(kind_.remedy),
                        where_);
  }
  return std::move(read->record);
}

void Journal::read_records() {
  const std::vector<std::uint64_t> numbers = numbers_of_records(kind_.operation, directory_);
  bool is_other = false;
  for (const std::uint64_t number : numbers) {
    next_ = std::max(next_, number + 1);
    if (std::optional<JournalRecord> record = read_record(path_of(number), is_other)) {
      if (record->number == number) found_.push_back(std::move(*record));
    }
    if (is_other || found_.size() == 2) break;
  }
  if (numbers.empty() || !found_.empty() || is_other) return;
  throw FileError("[" + std::string(kind_.operation) + "] no record of the journal in '" +
                  directory_ + "' can be read, because they are damaged (recorded at " +
                  to_string(where_) + "); remove the directory to start the run afresh");
}

void Journal::continue_from(const JournalRecord& record) {
  for (auto other = found_.rbegin(); other != found_.rend(); ++other) {
    if (other->number > record.number) continue;
    for (const JournalEntry& entry : other->entries) file_->hold(entry.extent);
    kept_.push_back(*other);
  }
  // Later ones, and one that a killed process could not remove.
  for (const std::uint64_t number : numbers_of_records(kind_.operation, directory_)) {
    if (std::ranges::find(kept_, number, &JournalRecord::number) == kept_.end()) {
      unlink(path_of(number).c_str());
    }
  }
}

void Journal::start() {
  // The last record, which is of a finished run, goes last. If this process is killed before, the
  // records of that run do not look like those of a run that can continue.
  const std::vector<std::uint64_t> numbers = numbers_of_records(kind_.operation, directory_);
  for (const std::uint64_t number : numbers | std::views::reverse) {
    unlink(path_of(number).c_str());
  }
  if (!numbers.empty()) sync_directory(kind_.operation, directory_);
  file_->trim();
}

void Journal::forget(const JournalRecord& record) {
  unlink(path_of(record.number).c_str());
  for (const JournalEntry& entry : record.entries) file_->release(entry.extent);
}

void Journal::add_record(JournalRecord record) {
  file_->sync();
  record.number = next_++;
  JournalWriter writer;
  writer.text(kind_.mark);
  writer.number(identity_.size());
  for (const std::string& line : identity_) writer.text(line);
  writer.number(record.number);
  writer.number(record.is_finished ? 1 : 0);
  writer.text({reinterpret_cast<const char*>(record.position.data()), record.position.size()});
  writer.number(record.entries.size());
  for (const JournalEntry& entry : record.entries) writer.value(entry);
  replace_file(kind_.operation, path_of(record.number), writer.with_hash());
  sync_directory(kind_.operation, directory_);
  for (const JournalEntry& entry : record.entries) file_->hold(entry.extent);
  kept_.push_back(std::move(record));
  for (; kept_.size() > 2; kept_.erase(kept_.begin())) forget(kept_.front());
}

void Journal::finish() {
  for (; kept_.size() > 1; kept_.erase(kept_.begin())) forget(kept_.front());
  file_->trim();
}

}  // namespace palimpsest
