#include "data/csv_records.h"

#include <csv.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <string_view>
#include <vector>

#include "autodiff/error.h"
#include "autodiff/files.h"

namespace palimpsest {
namespace {

/// libcsv's parser. It calls functions for fields and lines, which must not throw through its C
/// code.
class CsvParser {
 public:
  CsvParser(const std::string& path, char delimiter, const CsvRecord& record)
      : path_(path), record_(record) {
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) != 0) refuse_memory();
    csv_set_delim(&parser_, static_cast<unsigned char>(delimiter));
    csv_set_blk_size(&parser_, 4096);
  }
  ~CsvParser() { csv_free(&parser_); }
  CsvParser(const CsvParser&) = delete;
  CsvParser& operator=(const CsvParser&) = delete;

  /// Parses one line of the file, with the character that ends it.
  void parse(std::string_view line) {
    ++line_;
    check(csv_parse(&parser_, line.data(), line.size(), on_field, on_end, this) == line.size());
  }
  void finish() { check(csv_fini(&parser_, on_field, on_end, this) == 0); }

 private:
  static void on_field(void* field, std::size_t size, void* self) {
    static_cast<CsvParser*>(self)->guarded([&](CsvParser& parser) {
      // Reuses the memory of the fields of earlier lines.
      if (parser.count_ == parser.fields_.size()) parser.fields_.emplace_back();
      parser.fields_[parser.count_++].assign(static_cast<const char*>(field), size);
    });
  }
  static void on_end(int, void* self) {
    static_cast<CsvParser*>(self)->guarded([](CsvParser& parser) {
      parser.record_({parser.fields_.data(), parser.count_}, parser.line_);
      parser.count_ = 0;
    });
  }

  template <class F>
  void guarded(F f) noexcept {
    if (failure_ != nullptr) return;
    try {
      f(*this);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  void check(bool is_parsed) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (is_parsed) return;
    if (csv_error(&parser_) != CSV_EPARSE) refuse_memory();
    refuse_csv(path_, line_, static_cast<std::int64_t>(count_) + 1, "the quotes are wrong",
               "write quotes around the whole field, and each quote in it twice");
  }
  [[noreturn]] void refuse_memory() const {
    throw EnvironmentError("[read_csv] there is no memory to read " + path_ + "; free some");
  }

  const std::string& path_;
  const CsvRecord& record_;
  csv_parser parser_{};
  std::int64_t line_ = 0;
  std::vector<std::string> fields_;
  std::size_t count_ = 0;  // fields of the current line
  std::exception_ptr failure_;
};

}  // namespace

void read_csv_records(const std::string& path, char delimiter, const CsvRecord& record) {
  require_regular_file(path, "read_csv");
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw FileError("[read_csv] cannot open " + path +
                    "; check that the file exists and is readable");
  }
  CsvParser parser(path, delimiter, record);
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  std::string line;
  for (bool is_first = true; std::getline(file, line); is_first = false) {
    if (!file.eof()) line.push_back('\n');
    std::string_view text = line;
    if (is_first && text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    parser.parse(text);
  }
  if (file.bad()) throw FileError("[read_csv] reading " + path + " failed; check the disk");
  parser.finish();
}

std::string shown_field(std::string_view field) {
  constexpr std::size_t most = 40;
  std::size_t size = std::min(field.size(), most);
  const auto continues = [&](std::size_t i) {
    return i < field.size() && (static_cast<unsigned char>(field[i]) & 0xc0) == 0x80;
  };
  while (size > 0 && continues(size)) --size;  // UTF-8
  std::string text;
  for (const char each : field.substr(0, size)) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= 0x20 && byte != 0x7f) {
      text += each;
      continue;
    }
    constexpr std::string_view digits = "0123456789abcdef";
    text += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
  }
  return size < field.size() ? text + "…" : text;
}

void refuse_csv(const std::string& path, std::int64_t line, std::int64_t column,
                const std::string& problem, const std::string& step) {
  throw FileError("[read_csv] " + path + ", line " + std::to_string(line) + ", column " +
                  std::to_string(column) + ": " + problem + "; " + step);
}

}  // namespace palimpsest
