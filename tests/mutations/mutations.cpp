#include "tests/mutations/mutations.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "tests/cases.h"

namespace palimpsest {
namespace {

struct Token {
  std::size_t begin;
  std::size_t end;
};

bool is_punctuation(char c) { return std::strchr("{}[],:", c) != nullptr && c != '\0'; }

/// The strings, numbers and words of a JSON text.
std::vector<Token> values_of(const std::string& text) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (is_punctuation(c) || std::strchr(" \n\t\r", c) != nullptr) {
      ++at;
      continue;
    }
    const std::size_t begin = at++;
    if (c == '"') {
      while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
      at = std::min(at + 1, text.size());
    } else {
      while (at < text.size() && !is_punctuation(text[at]) && text[at] != '\n') ++at;
    }
    tokens.push_back({begin, at});
  }
  return tokens;
}

/// The end of the element that begins at `begin`: before the comma or bracket that closes it.
std::size_t end_of_element(const std::string& text, std::size_t begin) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth < 0 || (depth == 0 && c == ',')) return at;
  }
  return text.size();
}

constexpr const char* odd_values[] = {"-1",
                                      "0",
                                      "-0",
                                      "1",
                                      "2",
                                      "255",
                                      "65536",
                                      "2147483647",
                                      "2147483648",
                                      "4294967295",
                                      "4294967296",
                                      "1e18",
                                      "1e308",
                                      "1e999",
                                      "-1e999",
                                      "1e-320",
                                      "0.5",
                                      "NaN",
                                      "-Infinity",
                                      "9223372036854775807",
                                      "null",
                                      "true",
                                      "\"\"",
                                      "\"x\"",
                                      "9223372036854775808",
                                      "[]",
                                      "{}",
                                      "[[]]",
                                      "[0,0]",
                                      "18446744073709551616",
                                      "-9223372036854775808",
                                      "1152921504606846976",
                                      "2305843009213693951",
                                      "\"\\ud800\"",
                                      "\"\xff\"",
                                      "\"auto\"",
                                      "\"uniform:0\"",
                                      "\"binomial:99999999999\""};

constexpr std::uint64_t odd_numbers[] = {0,
                                         1,
                                         0x7f,
                                         0xff,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xffffffffffffffff};

}  // namespace

std::string Mutations::of_bytes(std::string content) {
  for (std::size_t times = 1 + below(3); times > 0; --times) change_bytes(content);
  return content;
}

std::string Mutations::of_json(std::string content) {
  for (std::size_t times = 1 + below(3); times > 0; --times) {
    below(4) == 0 ? change_bytes(content) : change_json(content);
  }
  return content;
}

void Mutations::change_bytes(std::string& content) {
  if (content.empty()) {
    content.push_back(static_cast<char>(below(256)));
    return;
  }
  const std::size_t at = below(content.size());
  const std::size_t length = 1 + below(std::min<std::size_t>(content.size() - at, 64));
  switch (below(7)) {
    case 0:
      content[at] = static_cast<char>(content[at] ^ (1 << below(8)));
      break;
    case 1:
      content[at] = static_cast<char>(below(256));
      break;
    case 2:
      content.resize(at);
      break;
    case 3:
      content.erase(at, length);
      break;
    case 4: {
      const std::string part = content.substr(at, length);
      for (std::size_t times = 1 + below(3); times > 0; --times) content.insert(at, part);
      break;
    }
    case 5: {
      const std::uint64_t number = odd_numbers[below(std::size(odd_numbers))];
      const std::size_t width = std::min<std::size_t>(below(2) == 0 ? 4 : 8, content.size() - at);
      std::memcpy(content.data() + at, &number, width);
      break;
    }
    default: {
      const std::size_t other = below(content.size());
      std::swap(content[at], content[other]);
    }
  }
}

void Mutations::change_json(std::string& content) {
  const std::vector<Token> tokens = values_of(content);
  if (tokens.empty()) return change_bytes(content);
  const auto [begin, end] = tokens[below(tokens.size())];
  const std::size_t element_end = end_of_element(content, begin);
  switch (below(5)) {
    case 0:
    case 1:
      content.replace(begin, end - begin, odd_values[below(std::size(odd_values))]);
      break;
    case 2: {  // a member or an element, with the comma after it
      const bool comma = element_end < content.size() && content[element_end] == ',';
      content.erase(begin, element_end - begin + (comma ? 1 : 0));
      break;
    }
    case 3:
      content.insert(begin, content.substr(begin, element_end - begin) + ",");
      break;
    default: {
      const auto [other_begin, other_end] = tokens[below(tokens.size())];
      const std::string other = content.substr(other_begin, other_end - other_begin);
      content.replace(begin, end - begin, other);
    }
  }
}

int mutations_wanted() {
  const int per_property = cases(100);  // the build's `property_cases`
  return per_property >= 200 ? 100'000 : 25 * per_property;
}

}  // namespace palimpsest
