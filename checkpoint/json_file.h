#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace palimpsest {

/// An object's members in order. Remembers a key that was given twice, which JSON readers usually
/// ignore.
template <class Key, class T, class Less, class Allocator>
class Members : public nlohmann::ordered_map<Key, T, Less, Allocator> {
 public:
  using Base = nlohmann::ordered_map<Key, T, Less, Allocator>;
  using Base::Base;

  T& operator[](const Key& key) {
    const auto found = this->find(key);
    if (found != this->end()) repeated_ = found - this->begin();
    return Base::operator[](key);
  }
  /// A key that was given twice, or null.
  const Key* repeated() const {
    return repeated_ < 0 ? nullptr : &(this->begin() + repeated_)->first;
  }

 private:
  std::ptrdiff_t repeated_ = -1;
};

using Json = nlohmann::basic_json<Members>;

class JsonFile;

/// A value of a JSON file that knows its place in it, such as `nodes[12] (matmul).inputs[1]`. Every
/// accessor that does not apply throws `FileError` naming file and place. Valid while its parent
/// is.
class JsonValue {
 public:
  /// The member called `key`, which must exist.
  JsonValue at(const char* key) const;
  /// Whether there is a member called `key`.
  bool has(const char* key) const;
  /// Requires an object with no members other than these, and none of them twice.
  void require_members(std::span<const char* const> keys) const;

  /// Number of elements of an array.
  std::size_t size() const;
  /// The element of an array at `index`, which must be less than its size.
  JsonValue operator[](std::size_t index) const;

  bool is_null() const { return value_->is_null(); }
  bool boolean() const;
  const std::string& text() const;
  std::int64_t integer() const;
  /// An integer that is not negative.
  std::int64_t natural() const;
  /// A number that is not negative.
  double amount() const;
  /// The enumerator among `meanings` whose `name_of` is the text.
  template <class E>
  E word(std::initializer_list<E> meanings) const {
    std::string known;
    for (const E meaning : meanings) {
      if (text() == name_of(meaning)) return meaning;
      known.append(known.empty() ? "" : ", ").append(name_of(meaning));
    }
    fail("\"" + text() + "\" is unknown; use one of " + known);
  }

  /// Throws `FileError`: file, place and `problem`.
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  friend class JsonFile;
  JsonValue(const JsonFile& file, const Json& value) : file_(&file), value_(&value) {}
  const Json* find(const char* key) const;
  std::string place() const;
  [[noreturn]] void fail_type(const char* wanted) const;

  const JsonFile* file_;
  const Json* value_;
  const JsonValue* parent_ = nullptr;
  const char* key_ = nullptr;  // in the parent; null for an element
  std::size_t index_ = 0;      // in the parent, for an element
};

/// JSON text and its source, for messages.
struct JsonText {
  std::string source;
  std::string text;
};

/// JSON in one of this library's formats, usually from a file.
class JsonFile {
 public:
  /// Reads the file. Its value must be an object of these members in addition to `"format": format`
  /// and `"version": 1`. Throws `FileError` in the name of `operation`, with the offset in bytes
  /// where it is not valid JSON.
  JsonFile(const std::string& path, const char* operation, const char* format,
           const std::vector<const char*>& members);
  /// Overload for JSON in memory.
  JsonFile(const JsonText& json, const char* operation, const char* format,
           const std::vector<const char*>& members);
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;

  JsonValue root() const { return {*this, json_}; }
  /// Throws `FileError`: operation, file, `place` and `problem`.
  [[noreturn]] void fail(const std::string& place, const std::string& problem) const;

 private:
  std::string source_;
  const char* operation_;
  Json json_;
};

}  // namespace palimpsest
