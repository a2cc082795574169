#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/stores/codec.h"

namespace palimpsest {

/// Which activations between the layers of a model are kept for its backward part. What lies
/// between two of them is computed again from the first. The input of the model is the caller's,
/// always at hand and not counted among what is kept.
struct LayerCheckpointing {
  enum class Mode : std::uint8_t {
    none,  ///< nothing is computed again: every layer keeps what its backward reads, its tape
    /// The inputs of the layers `interval`, 2·`interval`, … are kept, and the tapes of the layers
    /// from the last of them on, until they have been differentiated: computed again then, they
    /// would take as much memory. Not with a `codec` that rounds, whose gradients are those at the
    /// rounded input.
    every,
    listed,  ///< the inputs of `layers` are kept, and tapes in the same way
    /// Some layers keep their tapes, and of others inputs are kept, so that least is computed again
    /// while all that is held at a time takes at most `memory_fraction` of the tapes of all layers.
    dynamic,
  };
  /// Of a layer that has an attention and a feed-forward sublayer, those whose inputs are kept.
  struct Sublayers {
    bool attention = true;  ///< whose input is the layer's; the one of a layer without sublayers
    bool feed_forward = false;

    bool operator==(const Sublayers&) const = default;
  };

  Mode mode = Mode::none;
  /// Of `every`: from 1 on. With `feed_forward`, the input of layer 0's feed-forward is kept too.
  std::optional<int> interval = {};
  /// Of `every`: an interval below is refused. Of `dynamic`: what is computed again from a kept
  /// activation is so many layers at least, unless they are the last ones.
  std::optional<int> minimum_interval = {};
  std::vector<int> layers = {};                ///< of `listed`, in any order, none of them twice
  std::optional<double> memory_fraction = {};  ///< of `dynamic`, above 0 and at most 1
  Sublayers sublayers = {};
  /// Most activations kept on their own. The interval of `every` is taken wide enough for that, a
  /// list that is longer is refused.
  std::optional<int> max_kept = {};
  /// How activations are kept that layers are computed again from. The gradients are exact for the
  /// layers computed again from what was rounded: those of a trajectory nearby, within the errors
  /// of `Codec` at every activation kept. Tapes and the model's output are not rounded.
  Codec codec = Codec::exact;

  /// One line: the mode, and what differs from the default.
  std::string summary() const;

  bool operator==(const LayerCheckpointing&) const = default;
};

std::ostream& operator<<(std::ostream& stream, const LayerCheckpointing& checkpointing);

/// `none`, `every`, `listed` or `dynamic`.
std::string_view name_of(LayerCheckpointing::Mode mode);

/// Throws `ArgumentError` for numbers out of range and for settings that contradict each other: one
/// that the mode has no use for, or that it needs and is not there.
void require_valid(const LayerCheckpointing& checkpointing);

/// A configuration as JSON of format `palimpsest-layers`, version 1. Its members are those of the
/// struct, of which all but `mode` may be left out:
///
///     {"format": "palimpsest-layers", "version": 1, "mode": "every", "interval": 2,
///      "sublayers": {"attention": true, "feed_forward": true}, "codec": "half"}
///
/// Throws `ArgumentError` when the configuration is not valid.
std::string to_json(const LayerCheckpointing& checkpointing);
/// The configuration that JSON says. Throws `FileError` naming the place in it for whatever the
/// format does not allow, and for what `require_valid` refuses.
LayerCheckpointing layer_checkpointing_from_json(std::string_view text);

/// The same from and to files. Errors name the file too; `FileError` when it cannot be read or
/// written.
LayerCheckpointing read_layer_checkpointing(const std::string& path);
void write_layer_checkpointing(const LayerCheckpointing& checkpointing, const std::string& path);

}  // namespace palimpsest
