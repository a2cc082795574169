#include "strategy/mpi/rank_world.h"

#include "autodiff/require_function.h"
#include "strategy/mpi/rank_link.h"

namespace palimpsest {

RankWorld::RankWorld() {
  int is_finalised = 0;
  MPI_Finalized(&is_finalised);
  if (is_finalised != 0) {
    throw EnvironmentError(
        "[ranks] MPI was finalised; keep one RankWorld for the life of the program");
  }
  int is_initialised = 0;
  MPI_Initialized(&is_initialised);
  int provided = MPI_THREAD_SINGLE;
  if (is_initialised != 0) {
    check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  } else {
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
              "MPI_Init_thread");
    initialised_ = true;
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    if (initialised_) MPI_Finalize();
    throw EnvironmentError(
        "[ranks] MPI was initialised for one thread; ask MPI_Init_thread for "
        "MPI_THREAD_SERIALIZED");
  }
  link_ = std::make_unique<RankLink>(MPI_COMM_WORLD);
}

RankWorld::~RankWorld() {
  link_->leave();
  link_.reset();
  if (initialised_) MPI_Finalize();
}

int RankWorld::rank() const { return link_->rank(); }
int RankWorld::size() const { return link_->size(); }
int RankWorld::ranks_here() const { return link_->ranks_here(); }

void RankWorld::together(const std::function<void()>& work, Where where) {
  std::exception_ptr failure;
  try {
    detail::require_function(work, "together", "the argument", "does the work of a rank", where);
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  link_->meet(RankCall::together, {}, failure);
}

std::optional<int> RankWorld::first_failed() const { return link_->first_failed(); }

}  // namespace palimpsest
