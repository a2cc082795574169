#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategy/compile/kept_plannings.h"
#include "strategy/parallel/partition/piece.h"

namespace palimpsest {

/// How pieces are planned.
struct PieceOptions {
  RunOptions run;           ///< the planner is for backward pieces, unless it is for all
  int threads;              ///< of a piece
  bool has_fraction;        ///< the planner asks for a fraction of the memory, or what is least
  bool all_pieces = false;  ///< the planner is for forward pieces, too
};

/// Programs of pieces: pieces that do the same, random numbers aside, share one, or the error of a
/// budget that is too small for them. Kept are 1024 at most, and 16 MiB unless the program that was
/// planned last takes more. For one thread at a time.
class PiecePrograms {
 public:
  /// While a program is planned. Plannings of its pieces are kept for other budgets until it
  /// ends.
  class Session {
   public:
    explicit Session(PiecePrograms& programs) : programs_(programs) { programs.begin_planning(); }
    ~Session() { programs_.plannings_.clear(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

   private:
    PiecePrograms& programs_;
  };
  /// Bytes that are kept, about.
  Bytes bytes() const { return bytes_; }
  /// A program in a workspace of `budget` bytes; one that computes nothing again where the piece is
  /// to `keep`. Throws `BudgetError`.
  std::shared_ptr<const StepProgram> plan(const Piece& piece, const PieceOptions& options,
                                          Bytes budget, bool keep = false);
  /// The smallest workspace of a piece.
  Bytes least(const Piece& piece, const PieceOptions& options);
  /// Plans made so far.
  std::uint64_t made() const { return made_; }

 private:
  /// Pieces that hold operations of users, which may never come again, are let go when the last few
  /// programs had none like them.
  void begin_planning();
  std::shared_ptr<const StepProgram> find_or_plan(const Piece& piece, const RunOptions& options,
                                                  int threads);

  struct Entry {
    std::vector<std::uint64_t> signature;
    StepProgram::Wanted wanted;
    Bytes budget;
    std::string planner;
    int threads;
    std::shared_ptr<const Tape> tape;            ///< of the piece
    std::shared_ptr<const StepProgram> program;  ///< null where the budget is too small
    std::optional<BudgetError> refusal;          ///< then
    Bytes bytes;                                 ///< about
    bool comes_again;            ///< does what depends on nothing but what is recorded
    std::uint64_t last_use = 0;  ///< the number of the program that was planned then
  };
  void erase(std::list<Entry>::iterator entry);
  Entry plan_anew(const Piece& piece, const RunOptions& options, int threads, std::string planner);
  void keep(Entry entry);

  std::list<Entry> entries_;  // most recently used first
  KeptPlannings plannings_{16_MiB};
  std::vector<std::uint64_t> signature_;
  std::uint64_t made_ = 0;
  std::uint64_t planned_ = 0;  // programs
  Bytes bytes_ = 0;
};

}  // namespace palimpsest
