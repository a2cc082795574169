#include "strategy/execution/layer_checkpointing/layer_run.h"

#include "autodiff/storage_version.h"
#include "strategy/execution/layer_checkpointing/added_reports.h"

namespace palimpsest {
namespace {

std::span<std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.raw(), static_cast<std::size_t>(tensor.bytes())};
}

}  // namespace

void LayerExtras::add(std::vector<Tensor> made, std::span<const Tape::Update> recorded) {
  const auto first = made.end() - std::ssize(recorded);
  std::move(made.begin(), first, std::back_inserter(outputs));
  std::move(first, made.end(), std::back_inserter(values));
  updates.insert(updates.end(), recorded.begin(), recorded.end());
}

void LayerExtras::add(const LayerExtras& others) {
  outputs.insert(outputs.end(), others.outputs.begin(), others.outputs.end());
  updates.insert(updates.end(), others.updates.begin(), others.updates.end());
  values.insert(values.end(), others.values.begin(), others.values.end());
}

LayerRun::LayerRun(const Setting& setting, std::vector<LayerSegment> segments, const Tensor& input,
                   std::uint64_t seed)
    : setting_(setting),
      segments_(std::move(segments)),
      seed_(seed),
      version_(latest_version()),
      first_stream_(setting.stages.size() + 1),
      input_(input) {
  setting_.meter.reset_peaks();
  use_.forward_passes.assign(setting_.stages.size(), 0);
  Tensor x = input;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const LayerSegment& segment = segments_[i];
    held_.emplace_back();
    if (keeps_input(segments_, i)) {
      held_.back().input = keep(x, segment);
      ++use_.kept_activations;
    }
    x = segment.taped ? forward_taped(segment, std::move(x))
                      : forward_passing(segment, std::move(x));
  }
  output_ = std::move(x);
  use_.kept = setting_.meter.live();
  use_.peak = setting_.meter.peak();
}

std::unique_ptr<Tape> LayerRun::tape_behind() const {
  const auto part = static_cast<std::uint32_t>(setting_.stages.size());
  return tape_from({seed_, first_stream_.back(), part},
                   in_precision_of(setting_.evaluator, setting_.precision));
}

Allocate LayerRun::metered() const {
  return [this](Bytes bytes) { return setting_.meter.allocate(bytes); };
}

StageTape LayerRun::record(std::size_t stage, const Tensor& input) const {
  const Streams streams{seed_, first_stream_[stage], static_cast<std::uint32_t>(stage)};
  return StageTape(setting_.stages[stage], input, streams, setting_.evaluator, setting_.precision);
}

void LayerRun::require_current(const StageTape& tape) const {
  if (version_ != latest_version()) tape.require_unchanged(version_, input_);
}

StageTape LayerRun::record_again(std::size_t stage, const Tensor& input) const {
  StageTape tape = record(stage, input);
  require_current(tape);
  return tape;
}

LayerRun::Kept LayerRun::keep(const Tensor& x, const LayerSegment& segment) const {
  if (segment.taped || !rounds(x.dtype())) return {x.buffer(), x.type(), false};
  const Bytes bytes = stored_bytes(x.bytes(), x.dtype(), setting_.codec);
  const Buffer buffer = setting_.meter.allocate(bytes);
  naming("the input of " + setting_.stages[segment.first].describe(), [&] {
    encode(bytes_of(x), x.dtype(), setting_.codec, {buffer.get(), static_cast<std::size_t>(bytes)});
  });
  return {buffer, x.type(), true};
}

Tensor LayerRun::forward_taped(const LayerSegment& segment, Tensor x) {
  for (std::size_t k = segment.first; k < segment.last; ++k) {
    held_.back().tapes.push_back(record(k, x));
    StageTape& tape = held_.back().tapes.back();
    first_stream_[k + 1] = tape.streams();
    tape.differentiate();
    StageTape::Outputs outputs;
    if (k + 1 < setting_.stages.size()) {
      tape.hold(metered(), StageTape::Output::held, &outputs);
      x = tape.held_output();
    } else {
      x = tape.hold(metered(), StageTape::Output::returned, &outputs).output;
    }
    extras_.add(std::move(outputs), tape.updates());
    ++use_.forward_passes[k];
  }
  return x;
}

Tensor LayerRun::forward_passing(const LayerSegment& segment, Tensor x) {
  for (std::size_t k = segment.first; k < segment.last; ++k) {
    StageTape tape = record(k, x);
    first_stream_[k + 1] = tape.streams();
    // An activation that is kept unrounded is allocated from the meter, so that it counts at once.
    const std::size_t next = held_.size();
    const bool stays = k + 1 == segment.last && next < segments_.size() &&
                       (segments_[next].taped || !rounds(tape.output_type().dtype));
    StageTape::Outputs outputs;
    x = tape.output(stays ? metered() : allocate_buffer, &outputs);
    extras_.add(std::move(outputs), tape.updates());
    ++use_.forward_passes[k];
  }
  return x;
}

Tensor LayerRun::restored(std::size_t index) const {
  if (index == 0) return input_;
  if (!held_[index].input) return held_[index - 1].tapes.back().held_output();
  const auto& [buffer, type, rounded] = *held_[index].input;
  if (!rounded) return Tensor(buffer, type.shape, type.dtype);
  const Tensor x(setting_.meter.allocate(type.bytes()), type.shape, type.dtype);
  const Bytes bytes = stored_bytes(x.bytes(), type.dtype, setting_.codec);
  decode({buffer.get(), static_cast<std::size_t>(bytes)}, type.dtype, setting_.codec, bytes_of(x));
  return x;
}

std::size_t LayerRun::segment_of(std::size_t stage) const {
  std::size_t index = 0;
  while (segments_[index].last <= stage) ++index;
  return index;
}

Tensor LayerRun::computed(std::size_t stage, const Allocate& allocate) {
  const std::size_t index = segment_of(stage);
  Tensor x = restored(index);
  for (std::size_t k = segments_[index].first; k < stage; ++k) {
    x = record_again(k, x).output(k + 1 == stage ? allocate : allocate_buffer);
    ++use_.forward_passes[k];
  }
  return x;
}

Tensor LayerRun::activation(std::size_t stage) {
  if (stage == setting_.stages.size()) return output_.clone();
  const std::size_t index = segment_of(stage);
  const std::size_t first = segments_[index].first;
  if (stage == first) return restored(index).clone();
  if (is_taped(index)) return held_[index].tapes[stage - first - 1].held_output().clone();
  return computed(stage, allocate_buffer);
}

bool LayerRun::is_kept(std::size_t stage) const {
  if (stage == setting_.stages.size()) return true;
  const std::size_t index = segment_of(stage);
  return stage == segments_[index].first || is_taped(index);
}

void LayerRun::save(std::size_t stage) {
  const std::size_t index = segment_of(stage);
  LayerSegment before = segments_[index];
  if (stage == before.first || (before.taped && !before.once)) return;
  const Bytes live = setting_.meter.live();
  LayerSegment behind = before;
  before.last = behind.first = stage;
  Held held;
  if (is_taped(index)) {
    std::vector<StageTape>& tapes = held_[index].tapes;
    const auto cut = tapes.begin() + static_cast<std::ptrdiff_t>(stage - before.first);
    const Tensor x = std::prev(cut)->held_output();
    held.input = {x.buffer(), x.type(), false};
    held.tapes.assign(std::move_iterator(cut), std::move_iterator(tapes.end()));
    tapes.erase(cut, tapes.end());
  } else {
    held.input = keep(computed(stage, metered()), behind);
  }
  segments_[index] = before;
  const auto place = static_cast<std::ptrdiff_t>(index) + 1;
  segments_.insert(segments_.begin() + place, behind);
  held_.insert(held_.begin() + place, std::move(held));
  use_.kept += setting_.meter.live() - live;
  ++use_.kept_activations;
}

std::vector<StageTape> LayerRun::hold_again(std::size_t index, Report& report) {
  const LayerSegment& segment = segments_[index];
  std::vector<StageTape> tapes;
  Tensor x = restored(index);
  for (std::size_t k = segment.first; k < segment.last; ++k) {
    tapes.push_back(record_again(k, x));
    StageTape& tape = tapes.back();
    tape.differentiate();
    const bool is_last = k + 1 == segment.last;
    StageTape::Held held =
        tape.hold(metered(), is_last ? StageTape::Output::unneeded : StageTape::Output::held);
    if (held.run) add_run(report, std::move(*held.run), true);
    if (!is_last || tape.saves()) ++use_.forward_passes[k];
    if (!is_last) x = tape.held_output();
  }
  return tapes;
}

LayerRun::Adjoints LayerRun::backward(Tensor adjoint) {
  Adjoints found;
  found.parameters.resize(setting_.stages.size());
  found.report.planner = "layers";
  std::size_t reached = setting_.stages.size();
  for (std::size_t i = segments_.size(); adjoint.defined() && i-- > 0;) {
    const LayerSegment& segment = segments_[i];
    const bool taped = is_taped(i);
    std::vector<StageTape> again;
    if (!taped) again = hold_again(i, found.report);
    for (std::size_t k = segment.last; adjoint.defined() && k-- > segment.first;) {
      StageTape& tape = taped ? held_[i].tapes[k - segment.first] : again.back();
      if (taped) require_current(tape);
      StageTape::Adjoints adjoints = tape.reverse(adjoint);
      if (adjoints.run) add_run(found.report, std::move(*adjoints.run), false);
      found.parameters[k] = std::move(adjoints.parameters);
      adjoint = std::move(adjoints.input);
      reached = k;
      if (!taped) again.pop_back();
    }
    if (segment.once) held_[i].tapes.clear();
  }
  while (reached-- > 0) {
    for (const Tensor& parameter : setting_.stages[reached].parameters()) {
      found.parameters[reached].push_back(Tensor::zeros(parameter.shape(), parameter.dtype()));
    }
  }
  if (!adjoint.defined() && is_floating(input_.dtype())) {
    adjoint = Tensor::zeros(input_.shape(), input_.dtype());
  }
  use_.peak = setting_.meter.peak();
  found.input = std::move(adjoint);
  return found;
}

}  // namespace palimpsest
