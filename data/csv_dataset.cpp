#include "data/csv_dataset.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/csv_records.h"
#include "data/stored_column.h"

namespace palimpsest {
namespace {

/// A tensor while its rows are read.
struct GrowingTensor {
  CsvTensor tensor;
  std::vector<std::size_t> columns = {};  // of the file, in the order of a row
  std::vector<std::byte> elements = {};
};

/// The value of a field, from decimal text.
template <class T>
std::errc parse_field(std::string_view field, T& value) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  const char* const begin = field.data();
  const char* const end = begin + field.size();
  const auto [parsed, error] = std::from_chars(begin, end, value);
  if (parsed != end) return error == std::errc() ? std::errc::invalid_argument : error;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {
      // Numbers too small for T become 0 or subnormal; only those too large are an error.
      const std::string text(field);
      char* rest = nullptr;
      const double nearest = std::strtod(text.c_str(), &rest);
      if (*rest == '\0' && std::abs(nearest) < 1) {
        value = static_cast<T>(nearest);
        return {};
      }
    }
  }
  return error;
}

/// Makes tensors of the lines of a file.
class CsvTable {
 public:
  CsvTable(std::string path, const std::vector<CsvTensor>& tensors, bool has_header)
      : path_(std::move(path)), has_header_(has_header) {
    for (const CsvTensor& tensor : tensors) {
      if (tensor.dtype != DType::f64 && tensor.dtype != DType::f32 && tensor.dtype != DType::i64) {
        throw DTypeError("[read_csv] tensor '" + tensor.name + "' cannot be " +
                         std::string(name_of(tensor.dtype)) + "; use f64, f32 or i64");
      }
      tensors_.push_back({tensor});
    }
  }

  void add(std::span<const std::string> fields, std::int64_t line) {
    if (names_.empty()) {
      set_names(fields, line);
      if (has_header_) return;
    }
    if (fields.size() != names_.size()) {
      refuse_csv(path_, line, static_cast<std::int64_t>(std::min(fields.size(), names_.size())) + 1,
                 "the line has " + std::to_string(fields.size()) + " fields, not " +
                     std::to_string(names_.size()),
                 "correct or remove it");
    }
    for (GrowingTensor& growing : tensors_) {
      for (const std::size_t column : growing.columns) {
        if (growing.tensor.dtype == DType::f64) append<double>(growing, fields, column, line);
        if (growing.tensor.dtype == DType::f32) append<float>(growing, fields, column, line);
        if (growing.tensor.dtype == DType::i64) append<std::int64_t>(growing, fields, column, line);
      }
    }
    ++size_;
  }

  Dataset dataset() {
    if (names_.empty()) {
      throw FileError("[read_csv] " + path_ + " has no lines; give it a header or an example");
    }
    std::vector<StoredColumn> columns;
    for (GrowingTensor& growing : tensors_) {
      Shape example;
      if (!growing.tensor.columns.empty()) example.push_back(std::ssize(growing.columns));
      const auto owner = std::make_shared<std::vector<std::byte>>(std::move(growing.elements));
      columns.push_back({.column = {growing.tensor.name, {example, growing.tensor.dtype}},
                         .memory = Buffer(owner, owner->data()),
                         .first = owner->data()});
    }
    return stored_dataset(size_, std::move(columns));
  }

 private:
  /// Takes the names of the header, or numbers the fields of the first line.
  void set_names(std::span<const std::string> fields, std::int64_t line) {
    for (const std::string& field : fields) {
      const std::int64_t column = std::ssize(names_) + 1;
      const std::string name = has_header_ ? field : std::to_string(column);
      if (!positions_.emplace(name, names_.size()).second) {
        refuse_csv(path_, line, column,
                   "an earlier column is also called '" + shown_field(name) + "'", "rename one");
      }
      names_.push_back(name);
    }
    if (tensors_.empty()) {
      for (const std::string& name : names_) tensors_.push_back({{name, {}, DType::f64}});
    }
    for (GrowingTensor& growing : tensors_) {
      const CsvTensor& tensor = growing.tensor;
      if (tensor.columns.empty()) growing.columns.push_back(column(tensor.name));
      for (const std::string& name : tensor.columns) growing.columns.push_back(column(name));
    }
  }

  std::size_t column(const std::string& name) const {
    const auto found = positions_.find(name);
    if (found != positions_.end()) return found->second;
    std::string known;
    for (const std::string& other : names_)
      known += (known.empty() ? "" : ", ") + shown_field(other);
    throw ArgumentError("[read_csv] " + path_ + " has no column '" + shown_field(name) +
                        "'; use one of " + known);
  }

  template <class T>
  void append(GrowingTensor& growing, std::span<const std::string> fields, std::size_t column,
              std::int64_t line) {
    T value{};
    const std::string& field = fields[column];
    if (const std::errc error = parse_field(field, value); error != std::errc()) {
      const bool is_outside = error == std::errc::result_out_of_range;
      const std::string dtype(name_of(dtype_of<T>()));
      refuse_csv(path_, line, static_cast<std::int64_t>(column) + 1,
                 "'" + shown_field(field) + "' in '" + shown_field(names_[column]) +
                     (is_outside ? "' does not fit " : "' is no number of ") + dtype,
                 is_outside ? "use another dtype" : "correct it, or remove the line");
    }
    const std::size_t place = growing.elements.size();
    growing.elements.resize(place + sizeof(T));
    std::memcpy(growing.elements.data() + place, &value, sizeof(T));
  }

  std::string path_;
  bool has_header_;
  std::vector<std::string> names_;                // of the columns, known after the first line
  std::map<std::string, std::size_t> positions_;  // of these names
  std::vector<GrowingTensor> tensors_;
  std::int64_t size_ = 0;
};

}  // namespace

Dataset read_csv(const std::string& path, const std::vector<CsvTensor>& tensors,
                 const CsvOptions& options) {
  if (std::string_view("\"\r\n").find(options.delimiter) != std::string_view::npos) {
    throw ArgumentError("[read_csv] quotes and line ends cannot be the delimiter; use ',' or ';'");
  }
  CsvTable table(path, tensors, options.has_header);
  read_csv_records(
      path, options.delimiter,
      [&](std::span<const std::string> fields, std::int64_t line) { table.add(fields, line); });
  return table.dataset();
}

}  // namespace palimpsest
