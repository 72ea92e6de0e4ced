// Puts the slot allocator of a PyTorch checkout, ATen/mps/MPSStreamSlots.h, behind the C ABI of the reference.
//
// mpsforge_stamp.h, which is written for each header, defines MPSFORGE_STAMP: what identity() answers.
#include <ATen/mps/MPSStreamSlots.h>

#include <cstring>
#include <exception>
#include <string>

#include "../slots/slots.h"
#include "mpsforge_stamp.h"

namespace {

using at::mps::MPSStreamSlots;

MPSStreamSlots* implementation(mpsforge_slots* self) { return reinterpret_cast<MPSStreamSlots*>(self); }

uint32_t to_outcome(MPSStreamSlots::Outcome outcome) {
  switch (outcome) {
    case MPSStreamSlots::Outcome::Leased:
      return MPSFORGE_SLOTS_LEASED;
    case MPSStreamSlots::Outcome::Shared:
      return MPSFORGE_SLOTS_SHARED;
    case MPSStreamSlots::Outcome::Exhausted:
      return MPSFORGE_SLOTS_EXHAUSTED;
  }
  return UINT32_MAX;  // no outcome that a checker accepts
}

uint32_t to_number(MPSStreamSlots::Policy policy) {
  switch (policy) {
    case MPSStreamSlots::Policy::Share:
      return MPSFORGE_SLOTS_SHARE;
    case MPSStreamSlots::Policy::Wait:
      return MPSFORGE_SLOTS_WAIT;
    case MPSStreamSlots::Policy::Error:
      return MPSFORGE_SLOTS_ERROR;
  }
  return UINT32_MAX;
}

size_t copy_text(const std::string& text, char* buffer, size_t size) {
  if (size > 0) {
    const size_t length = text.size() < size ? text.size() : size - 1;
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
  }
  return text.size();
}

mpsforge_slots* create(const mpsforge_slots_config* config) noexcept {
  MPSStreamSlots::Config own;
  own.worker_slots = config->worker_slots;
  own.wait_ms = config->wait_ms;
  switch (config->policy) {
    case MPSFORGE_SLOTS_SHARE:
      own.policy = MPSStreamSlots::Policy::Share;
      break;
    case MPSFORGE_SLOTS_WAIT:
      own.policy = MPSStreamSlots::Policy::Wait;
      break;
    case MPSFORGE_SLOTS_ERROR:
      own.policy = MPSStreamSlots::Policy::Error;
      break;
    default:
      return nullptr;
  }
  try {
    return reinterpret_cast<mpsforge_slots*>(new MPSStreamSlots(own));
  } catch (const std::exception&) {
    return nullptr;
  }
}

void acquire(mpsforge_slots* self, mpsforge_slots_result* result) noexcept {
  const auto got = implementation(self)->acquire();
  *result = {to_outcome(got.outcome), 0, 0, got.first_share ? 1u : 0u};
  if (got.outcome == MPSStreamSlots::Outcome::Leased) {
    result->slot = got.lease.slot;
    result->generation = got.lease.generation;
  }
}

int release(mpsforge_slots* self, uint32_t slot, uint64_t generation) noexcept {
  MPSStreamSlots::Lease lease;
  lease.slot = slot;
  lease.generation = generation;
  return implementation(self)->release(lease);
}

void statistics(mpsforge_slots* self, mpsforge_slots_statistics* result) noexcept {
  const auto numbers = implementation(self)->statistics();
  *result = {numbers.live,   numbers.peak,      numbers.leases,  numbers.waits,
             numbers.shares, numbers.exhausted, numbers.refused, numbers.waiting};
}

size_t message(mpsforge_slots* self, int which, char* buffer, size_t size) noexcept {
  const auto* slots = implementation(self);
  return copy_text(which == MPSFORGE_SLOTS_SHARE_WARNING ? slots->shareWarning() : slots->exhaustedError(), buffer,
                   size);
}

int parse(const char* pool_size, const char* exhausted, mpsforge_slots_config* config, char* buffer,
          size_t size) noexcept {
  const auto parsed = MPSStreamSlots::parse(pool_size, exhausted);
  *config = {parsed.config.worker_slots, to_number(parsed.config.policy), parsed.config.wait_ms};
  std::string text;
  for (const std::string& warning : parsed.warnings) text += (text.empty() ? "" : "\n") + warning;
  copy_text(text, buffer, size);
  return static_cast<int>(parsed.warnings.size());
}

const mpsforge_slots_api api = {
    MPSFORGE_SLOTS_ABI,
    []() noexcept { return MPSFORGE_STAMP; },
    create,
    [](mpsforge_slots* self) noexcept { delete implementation(self); },
    acquire,
    release,
    statistics,
    message,
    parse,
};

}  // namespace

extern "C" const mpsforge_slots_api* mpsforge_slots_subject(void) { return &api; }
