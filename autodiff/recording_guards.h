#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "autodiff/tape.h"

namespace palimpsest {

/// While it exists, the evaluator is not notified of new nodes. Its destructor removes these
/// nodes from the tape; their `Var`s become invalid.
class [[nodiscard]] TemporaryNodes {
 public:
  explicit TemporaryNodes(Tape& tape)
      : tape_(tape), first_(tape.node_count()), outer_(tape.context_.is_temporary) {
    tape.context_.is_temporary = true;
  }
  ~TemporaryNodes() {
    tape_.take_off(first_);
    tape_.context_.is_temporary = outer_;
  }
  TemporaryNodes(const TemporaryNodes&) = delete;
  TemporaryNodes& operator=(const TemporaryNodes&) = delete;

 private:
  Tape& tape_;
  NodeId first_;
  bool outer_;
};

/// Marks that what its thread records on the tape is taken to another program, which outlives these
/// `TemporaryNodes`.
class [[nodiscard]] ExtractedNodes {
 public:
  explicit ExtractedNodes(Tape& tape);
  ~ExtractedNodes();
  ExtractedNodes(const ExtractedNodes&) = delete;
  ExtractedNodes& operator=(const ExtractedNodes&) = delete;

  /// True while one exists for this tape and thread.
  static bool are_on(const Tape& tape);

 private:
  const Tape& tape_;
  TemporaryNodes nodes_;
  const ExtractedNodes* before_;  // on this thread
};

/// Redirects recording. While it exists, nodes that its thread records on values of `outer`, and
/// leaves and scopes, go to `inner`. It is used when a user's function records an inner program,
/// such as a loop body, that reads values from outside. `stand_in` maps each of these to a value
/// of `inner`.
class [[nodiscard]] RedirectedRecording {
 public:
  using StandIn = std::function<Var(const Var&)>;
  /// `original` maps a value of `inner` that stands for another one to that value, and others to an
  /// empty handle.
  RedirectedRecording(Tape& outer, Tape& inner, StandIn stand_in, StandIn original = nullptr);
  ~RedirectedRecording();
  RedirectedRecording(const RedirectedRecording&) = delete;
  RedirectedRecording& operator=(const RedirectedRecording&) = delete;

  /// The value outside that a value stands for while its tape is recorded by this thread, or an
  /// empty handle.
  static Var original_of(const Var& value);
  /// A value that came here through another redirection, such as one from outside of the loop
  /// around a loop. Empty if there was none.
  const Var& value_from_further() const { return from_further_; }

 private:
  friend class Tape;
  std::optional<InUse::Use>
      use_of_outer_;  // none if a run of it records, because it is in use then
  InUse::Use use_of_inner_;
  Tape& outer_;
  Tape& inner_;
  StandIn stand_in_;
  StandIn original_;
  mutable Var from_further_;
  const RedirectedRecording* before_;  // on this thread
};

/// Marks that a run calls a function of the user, to record a step. Tapes that the function refers
/// to are in use by what waits for the run. The function cannot start another run there.
class [[nodiscard]] RecordingInRun {
 public:
  RecordingInRun();
  ~RecordingInRun();
  RecordingInRun(const RecordingInRun&) = delete;
  RecordingInRun& operator=(const RecordingInRun&) = delete;

 private:
  UserCall call_;
  bool outer_;
};

/// While it exists, what is recorded on the tape is run later, with other values of its leaves. So
/// the user cannot read values that depend on leaves.
class [[nodiscard]] ProgramRecording {
 public:
  explicit ProgramRecording(Tape& tape) : context_(tape.context_) { context_.is_program = true; }
  ~ProgramRecording() { context_.is_program = false; }
  ProgramRecording(const ProgramRecording&) = delete;
  ProgramRecording& operator=(const ProgramRecording&) = delete;

 private:
  RecordingContext& context_;
};

/// While it exists, nodes are recorded with the source line `where`.
class [[nodiscard]] Blame {
 public:
  Blame(Tape& tape, const Where& where)
      : context_(tape.context_),
        outer_(context_.blame),
        outer_scopes_(context_.scopes),
        where_(where) {
    context_.blame = &where_;
  }
  /// Adjoint nodes carry the line of the forward node that they differentiate and, outside of all
  /// scopes, its scopes.
  Blame(Tape& tape, NodeId differentiated) : Blame(tape, tape.where(differentiated)) {
    RecordingContext::Scopes& scopes = context_.scopes;
    if (scopes.path == 0 || scopes.is_inherited) {
      scopes.path = tape.nodes().labels(differentiated).scope;
      scopes.is_inherited = scopes.path != 0;
    }
  }
  ~Blame() {
    context_.blame = outer_;
    context_.scopes = outer_scopes_;
  }
  Blame(const Blame&) = delete;
  Blame& operator=(const Blame&) = delete;

 private:
  RecordingContext& context_;
  const Where* outer_;
  RecordingContext::Scopes outer_scopes_;
  Where where_;
};

}  // namespace palimpsest
