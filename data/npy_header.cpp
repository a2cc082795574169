#include "data/npy_header.h"

#include <charconv>
#include <set>

#include "data/stored_column.h"

namespace palimpsest {
namespace {

/// Reads a header's text, the literal of a Python dictionary.
class NpyText {
 public:
  /// `text` begins at byte `offset` of the file.
  NpyText(const std::string& file, std::string_view text, std::int64_t offset)
      : file_(file), text_(text), offset_(offset) {}

  NpyHeader read() {
    expect('{');
    while (!take('}')) {
      read_member();
      if (take('}')) break;
      expect(',');
    }
    skip_space();
    if (at_ != text_.size()) fail("text follows the header's dictionary");
    for (const char* key : {"descr", "fortran_order", "shape"}) {
      if (!keys_.contains(key)) fail(std::string("the header has no '") + key + "'");
    }
    return header_;
  }

 private:
  void read_member() {
    const std::string key = string();
    if (!keys_.insert(key).second) fail("the header has '" + key + "' twice");
    expect(':');
    skip_space();
    const std::int64_t place = offset_ + static_cast<std::int64_t>(at_);
    if (key == "descr") {
      if (at_ < text_.size() && text_[at_] == '[') {
        refuse_file(file_, place, "the elements are records with fields",
                    "save each field as an array");
      }
      header_.element_at = place;
      header_.element = string();
    } else if (key == "fortran_order") {
      header_.order_at = place;
      header_.is_fortran_order = take("True");
      if (!header_.is_fortran_order && !take("False")) fail("fortran_order is no True or False");
    } else if (key == "shape") {
      header_.sizes_at = place;
      read_sizes();
    } else {
      fail("the header has an unknown member '" + key + "'");
    }
  }

  void read_sizes() {
    expect('(');
    while (!take(')')) {
      skip_space();
      std::int64_t size = -1;
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("a size of the shape is no number from 0 on");
      at_ += static_cast<std::size_t>(end - begin);
      take("L");  // of numbers that Python 2 wrote
      header_.sizes.push_back(size);
      if (take(')')) break;
      expect(',');
    }
  }

  /// A string in single or double quotes, without escapes.
  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : text_.npos;
    if (end == text_.npos) fail("a string in quotes is missing");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return std::string(inside);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool take(char token) { return take(std::string_view(&token, 1)); }
  void expect(char token) {
    if (!take(token)) fail(std::string("'") + token + "' is missing in the header");
  }
  [[noreturn]] void fail(const std::string& problem) {
    refuse_file(file_, offset_ + static_cast<std::int64_t>(at_), problem);
  }

  const std::string& file_;
  std::string_view text_;
  std::int64_t offset_;
  std::size_t at_ = 0;
  std::set<std::string> keys_;
  NpyHeader header_;
};

}  // namespace

NpyHeader read_npy_header(const std::string& file, std::string_view content) {
  if (!content.starts_with(npy_mark)) {
    refuse_file(file, 0, "this is not a .npy file", "save it with numpy.save");
  }
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(content[at]); };
  const std::size_t version_at = npy_mark.size();
  const std::size_t length_at = version_at + 2;
  const std::size_t major = content.size() > version_at ? byte(version_at) : 0;
  const std::size_t text_at = length_at + (major == 1 ? 2 : 4);
  if (content.size() < text_at) {
    refuse_file(file, std::ssize(content), "the file ends before the length of its header");
  }
  if (major < 1 || major > 3) {
    refuse_file(file, static_cast<std::int64_t>(version_at),
                "version " + std::to_string(major) + " of the format is not supported",
                "save it with version 1, 2 or 3");
  }
  std::size_t length = 0;
  for (std::size_t at = text_at; at-- > length_at;) length = length << 8 | byte(at);
  if (length > content.size() - text_at) {
    refuse_file(file, static_cast<std::int64_t>(length_at),
                "a header of " + std::to_string(length) + " bytes does not fit a file of " +
                    std::to_string(content.size()));
  }
  const auto offset = static_cast<std::int64_t>(text_at);
  NpyHeader header = NpyText(file, content.substr(text_at, length), offset).read();
  header.data = offset + static_cast<std::int64_t>(length);
  return header;
}

}  // namespace palimpsest
