#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace palimpsest {

/// Takes the fields of one line of a CSV file. `line` counts from 1. A field in quotes can extend
/// over lines; `line` is the last one.
using CsvRecord = std::function<void(std::span<const std::string> fields, std::int64_t line)>;

/// Calls `record` for every line of a CSV file that is not empty. Throws `FileError`, and what
/// `record` throws.
void read_csv_records(const std::string& path, char delimiter, const CsvRecord& record);

/// A field as messages show it: its first 40 bytes, without a part of a character at the end, and
/// control characters as `\x0d`.
std::string shown_field(std::string_view field);

/// Throws `FileError` for a place in a CSV file. `column` counts from 1.
[[noreturn]] void refuse_csv(const std::string& path, std::int64_t line, std::int64_t column,
                             const std::string& problem, const std::string& step);

}  // namespace palimpsest
