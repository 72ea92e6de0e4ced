// The reference pool: an independent implementation of docs/dev/spec/pool.md, the plainest that satisfies it, as it is
// the judge of other implementations. It calls Metal through the configuration's table alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "../schedule/sync.h"
#include "announcements.h"
#include "blocking.h"
#include "configuration.h"
#include "fences.h"
#include "guard.h"
#include "leases.h"
#include "memory.h"
#include "pool.h"
#include "profiler.h"
#include "streams.h"
#include "threads.h"
#include "warnings.h"

struct mpsforge_pool {
  mpsforge_pool(const mpsforge_pool_config& given, const mpsforge::pool::Configuration& read);

  const mpsforge_pool_config config;
  const mpsforge::pool::Backend backend;
  const mpsforge::pool::Configuration configuration;
  mpsforge::pool::Warnings warnings;
  mpsforge::pool::Announcements announcements;
  mpsforge::pool::Streams streams;
  mpsforge::pool::Leases leases;
  mpsforge::pool::Fences fences;
  mpsforge::pool::Memory memory;
  mpsforge::pool::Guards guards;
  mpsforge::pool::Threads threads;
  mpsforge::pool::Profiler profiler;
  // Rule 20: held around the encode call alone. A leaf. PyTorch's is one a process, as its pool is.
  mpsforge::sync::Mutex encode_lock;
  // Freed tensors' handles. As a reference of PyTorch's they outlive operators that still use them, in programs without
  // the order that would keep these apart; what the memory holds by then is another matter.
  std::mutex freed_lock;
  std::vector<std::unique_ptr<mpsforge_pool_tensor>> freed;

  // The stream that an operator of the calling thread works on. Throws Failure by rules 8 and 11.
  mpsforge::pool::Stream& working_stream() { return streams.reachable(threads.working()); }
};

struct mpsforge_pool_tensor {
  mpsforge_pool& pool;
  mpsforge::pool::Block* const block;
  const size_t elements;
  // The CPU may write it as it is: memory for the CPU that no operator has used yet.
  std::atomic<bool> cpu_next;

  size_t bytes() const { return elements * sizeof(int32_t); }
};

struct mpsforge_pool_host {
  mpsforge_pool& pool;
  const std::shared_ptr<mpsforge_metal_buffer> buffer;
  const size_t elements;
};

namespace mpsforge::pool {

// operators.cc. They throw Failure.
mpsforge_pool_tensor* empty(mpsforge_pool& pool, size_t elements, bool for_cpu);
void operate(mpsforge_pool& pool, const mpsforge_pool_operator& op);
Uses uses_of(mpsforge_pool& pool, const mpsforge_pool_use* uses, size_t count);
void read(mpsforge_pool_tensor& tensor, int32_t* to);
void write(mpsforge_pool_tensor& tensor, const int32_t* from);
mpsforge_pool_host* host(mpsforge_pool& pool, size_t elements);
void copy_to_host(mpsforge_pool_tensor& tensor, const mpsforge_pool_host& host);

}  // namespace mpsforge::pool
