#include "checkpoint/json_file.h"

#include <algorithm>
#include <string_view>

#include "autodiff/error.h"
#include "autodiff/files.h"

namespace palimpsest {
namespace {

/// Describes the byte, which counts from 1, where a parser gave up.
std::string unexpected_at(const std::string& text, std::size_t byte) {
  if (byte == 0 || byte > text.size()) return "the text ends too early";
  const char found = text[byte - 1];
  if (found > ' ' && found <= '~') return std::string("'") + found + "' is unexpected here";
  constexpr const char* digits = "0123456789abcdef";
  const auto number = static_cast<unsigned char>(found);
  return std::string("the byte 0x") + digits[number / 16] + digits[number % 16] +
         " is unexpected here";
}

}  // namespace

JsonValue JsonValue::at(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) fail("\"" + std::string(key) + "\" is missing");
  JsonValue member(*file_, *value);
  member.parent_ = this;
  member.key_ = key;
  return member;
}

bool JsonValue::has(const char* key) const { return find(key) != nullptr; }

const Json* JsonValue::find(const char* key) const {
  if (!value_->is_object()) fail_type("an object");
  const auto found = value_->find(key);
  return found == value_->end() ? nullptr : &*found;
}

void JsonValue::require_members(std::span<const char* const> keys) const {
  if (!value_->is_object()) fail_type("an object");
  const auto& members = value_->get_ref<const Json::object_t&>();
  if (const std::string* key = members.repeated())
    fail("\"" + *key + "\" occurs twice; give it once");
  for (const auto& [key, value] : members) {
    const auto same = [&k = key](const char* known) { return k == known; };
    if (std::any_of(keys.begin(), keys.end(), same)) continue;
    std::string problem = "\"" + key + "\" is unknown; the keys are";
    for (const char* name : keys) problem.append(name == keys.front() ? " " : ", ").append(name);
    fail(problem);
  }
}

std::size_t JsonValue::size() const {
  if (!value_->is_array()) fail_type("a list");
  return value_->size();
}

JsonValue JsonValue::operator[](std::size_t index) const {
  JsonValue element(*file_, (*value_)[index]);
  element.parent_ = this;
  element.index_ = index;
  return element;
}

bool JsonValue::boolean() const {
  if (!value_->is_boolean()) fail_type("true or false");
  return value_->get<bool>();
}

const std::string& JsonValue::text() const {
  if (!value_->is_string()) fail_type("a string");
  return value_->get_ref<const std::string&>();
}

std::int64_t JsonValue::integer() const {
  // The JSON library would convert 1.5 to 1 and 2^63 to a negative number.
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() || value_->get<std::uint64_t>() <= INT64_MAX);
  if (!fits) fail_type("a whole number");
  return value_->get<std::int64_t>();
}

std::int64_t JsonValue::natural() const {
  const std::int64_t number = integer();
  if (number < 0) fail(std::to_string(number) + " is negative; give 0 or more");
  return number;
}

double JsonValue::amount() const {
  if (!value_->is_number()) fail_type("a number");
  const auto number = value_->get<double>();
  if (number < 0) fail(value_->dump() + " is negative; give 0 or more");
  return number;
}

void JsonValue::fail(const std::string& problem) const { file_->fail(place(), problem); }

void JsonValue::fail_type(const char* wanted) const {
  const std::string given =
      value_->is_number() ? value_->dump() : "this " + std::string(value_->type_name());
  fail(given + " is not " + wanted);
}

std::string JsonValue::place() const {
  std::string text;
  for (const JsonValue* at = this; at->parent_ != nullptr; at = at->parent_) {
    std::string part = at->key_ != nullptr
                           ? (at->parent_->parent_ != nullptr ? "." : "") + std::string(at->key_)
                           : "[" + std::to_string(at->index_) + "]";
    if (at->value_->is_object()) {
      const auto name = at->value_->find("name");
      if (name != at->value_->end() && name->is_string()) {
        part += " (" + name->get_ref<const std::string&>() + ")";
      }
    }
    text.insert(0, part);
  }
  return text;
}

JsonFile::JsonFile(const std::string& path, const char* operation, const char* format,
                   const std::vector<const char*>& members)
    : JsonFile(JsonText{path, read_file(path, operation)}, operation, format, members) {}

JsonFile::JsonFile(const JsonText& json, const char* operation, const char* format,
                   const std::vector<const char*>& members)
    : source_(json.source), operation_(operation) {
  try {
    json_ = Json::parse(json.text);
  } catch (const Json::parse_error& error) {
    fail("byte " + std::to_string(error.byte),
         "not JSON, or truncated: " + unexpected_at(json.text, error.byte) + "; write it again");
  } catch (const Json::exception& error) {  // all that is left is a number, which it quotes
    const std::string_view what = error.what();
    const std::size_t begin = std::min(what.find('\''), what.size());
    fail("", "the number " + std::string(what.substr(begin)) +
                 " is too large for 64 bits; give a smaller one");
  }
  if (!json_.is_object()) fail("", std::string("not a JSON object, so not a ") + format + " file");
  const JsonValue top = root();
  if (const JsonValue given = top.at("format"); given.text() != format) {
    given.fail("\"" + given.text() + "\" is not \"" + format + "\"; give JSON of that format");
  }
  if (const JsonValue given = top.at("version"); given.integer() != 1) {
    given.fail(std::to_string(given.integer()) + " is unknown; this library reads version 1");
  }
  std::vector<const char*> keys{"format", "version"};
  keys.insert(keys.end(), members.begin(), members.end());
  top.require_members(keys);
}

void JsonFile::fail(const std::string& place, const std::string& problem) const {
  throw FileError("[" + std::string(operation_) + "] " + source_ + (place.empty() ? "" : ", ") +
                  place + ": " + problem);
}

}  // namespace palimpsest
