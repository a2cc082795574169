#pragma once

#include <cstdint>
#include <string>

namespace palimpsest {

/// Keys of entries have so many hexadecimal digits.
inline constexpr std::size_t code_key_length = 32;

/// The folder in which compiled code is kept for later processes: `$XDG_CACHE_HOME/palimpsest`, or
/// `~/.cache/palimpsest`. Code from a folder that others can write would run with this user's
/// rights. So such a folder is not used, nor one that others could replace, but a private temporary
/// one, which this process removes at its end.
class CodeCache {
 public:
  CodeCache();
  /// As `prepare_libraries`, for the temporary folder.
  static void prepare();

  /// The path of the folder; empty if there is none that can be used.
  const std::string& folder() const { return folder_; }
  /// True if later processes find the code.
  bool is_kept() const { return is_kept_; }

  /// The path of an entry.
  std::string path_of(const std::string& key) const { return folder_ + "/" + key + ".so"; }
  /// True if there is a complete entry that only this user can write. Deletes a broken one, and one
  /// of more than `most_bytes`, which is not read.
  bool has(const std::string& key) const;
  /// Adds the library at `built`, of at most `most_bytes`, as an entry: marks it as complete and
  /// renames it. Returns false if that fails. Then removes the entries that have been unused for
  /// longest, if all together take more than `most_bytes`, and what killed processes have left for
  /// a day. Other files in the folder are left alone.
  bool add(const std::string& key, const std::string& built) const;

  static constexpr std::int64_t most_bytes = 64 << 20;

 private:
  void trim() const;

  std::string folder_;
  bool is_kept_ = false;
};

}  // namespace palimpsest
