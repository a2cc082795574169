#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/stores/codec.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Which activations between the layers of a model are kept for its backward part. Layers between
/// two kept activations are recomputed from the first. The input of the model belongs to the
/// caller. It is always available, and does not count as kept.
struct LayerCheckpointing {
  enum class Mode : std::uint8_t {
    /// No recomputation: every layer keeps its tape, with everything that its backward part reads.
    none,
    /// Keeps the inputs of the layers whose number is a multiple of `interval`, except layer 0.
    /// From the last of them on, layers keep their tapes until they have been differentiated.
    /// Recomputing those would take as much memory. With a `codec` that rounds, these tapes are not
    /// kept, because gradients are those at the rounded input.
    every,
    /// Keeps the inputs of `layers`, and tapes as in `every`.
    listed,
    /// Some layers keep their tapes, and others only inputs. The choice minimizes recomputation
    /// while the bytes held at a time are at most `memory_fraction` of the tapes of all layers.
    dynamic,
  };
  /// For layers of an attention and a feed-forward sublayer: the sublayers whose inputs are kept.
  struct Sublayers {
    bool attention = true;  ///< its input is the layer's; also stands for a layer without sublayers
    bool feed_forward = false;

    bool operator==(const Sublayers&) const = default;
  };

  Mode mode = Mode::none;
  /// For `every`: at least 1. With `feed_forward`, the input of layer 0's feed-forward is kept too.
  std::optional<int> interval = {};
  /// For `every`: smaller intervals are refused. For `dynamic`: segments that are recomputed from a
  /// kept activation have at least this many layers, except the last segment.
  std::optional<int> minimum_interval = {};
  /// For `listed`, in any order, without duplicates.
  std::vector<int> layers = {};
  /// For `dynamic`, above 0 and at most 1.
  std::optional<double> memory_fraction = {};
  /// For every mode except `none`. Without it, the inputs of attention.
  Sublayers sublayers = {};
  /// Most activations kept on their own. The interval of `every` is widened to respect it; a
  /// `listed` configuration that is longer is refused.
  std::optional<int> max_kept = {};
  /// How kept activations that layers are recomputed from are encoded. The gradients are exact for
  /// layers computed from the rounded activation. They are those of a nearby trajectory, within the
  /// errors of `Codec` at every kept activation. Tapes and the model's output are not rounded. A
  /// finite number that the narrow dtype cannot hold throws `ArgumentError`.
  Codec codec = Codec::exact;

  /// One line: the mode, and what differs from the default.
  std::string summary() const;

  bool operator==(const LayerCheckpointing&) const = default;
};

std::ostream& operator<<(std::ostream& stream, const LayerCheckpointing& checkpointing);

/// `none`, `every`, `listed` or `dynamic`.
std::string_view name_of(LayerCheckpointing::Mode mode);

/// Throws `ArgumentError` for numbers out of range and for contradictory settings: one that the
/// mode does not use, or one that it needs and is missing.
void require_valid(const LayerCheckpointing& checkpointing);

/// A configuration as JSON of format `palimpsest-layers`, version 1. Its members are those of the
/// struct. All but `mode` may be omitted:
///
///     {"format": "palimpsest-layers", "version": 1, "mode": "every", "interval": 2,
///      "sublayers": {"attention": true, "feed_forward": true}, "codec": "half"}
///
/// Throws `ArgumentError` when the configuration is not valid.
std::string to_json(const LayerCheckpointing& checkpointing);
/// Parses a configuration from JSON. Throws `FileError`, with the path of the JSON value, for
/// anything that the format or `require_valid` refuses.
LayerCheckpointing layer_checkpointing_from_json(std::string_view text);

/// Read and write the same JSON as files. Errors also name the file. They throw `FileError` when
/// the file cannot be read or written.
LayerCheckpointing read_layer_checkpointing(const std::string& path);
void write_layer_checkpointing(const LayerCheckpointing& checkpointing, const std::string& path);

}  // namespace palimpsest
