// The rules of Metal that a call can break, with the texts that Metal prints, and the list of what was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "metal.h"

namespace mpsforge::metal {

// One entry for every text; the table is in findings.cc.
enum class Rule {
  ScheduledHandlerAfterCommit,
  CompletedHandlerAfterCommit,
  CompletedHandlerWhileEncoding,
  CommittedTwice,
  CommittedWhileEncoding,
  ComputeEncoderWhileEncoding,
  BlitEncoderWhileEncoding,
  EncoderAfterCommit,
  SignalAfterCommit,
  WaitAfterCommit,
  SignalWhileEncoding,
  WaitWhileEncoding,
  EnqueuedTwice,
  EncoderReleasedOpen,
  SyncOnOwnQueue,
  EndedTwice,
  EncodedAfterEnd,
  OutOfRange,
  BlitOnComputeEncoder,
  DispatchOnBlitEncoder,
  DispatchWithoutKernel,
  UnknownKernel,
  UnboundArgument,
  UndeclaredAccess,
  PrivateMemory,
  ForeignEncoder,
  EventNotRising,
  ContinuedPlainBuffer,
  OtherDevice,
  BytesTooLong,
  GroupSize,
  NotResident,
  Divergence,
  KernelRace,
};

class Findings {
 public:
  // Both as in mpsforge_metal_config.
  Findings(uint32_t on_violation, uint32_t macos);

  // Whether the macOS of this device has the rule.
  bool applies(Rule rule) const;
  // Records that the call named by second broke the rule because of the call named by first (empty: because of itself);
  // detail is added to the text. Does not return if violations abort.
  void violation(Rule rule, const std::string& first, const std::string& second, const std::string& detail = "");
  // Records a model's observation; aborts as violation does.
  void model(uint32_t signature, const std::string& message, const std::string& first, const std::string& second);
  void add(uint32_t kind, uint32_t signature, const std::string& message, const std::string& first,
           const std::string& second, const std::string& history = "");

  size_t copy(mpsforge_metal_finding* out, size_t capacity) const;
  uint64_t violations() const;

 private:
  void abort_if_asked(const std::string& message, const std::string& first, const std::string& second) const;

  const bool aborts_;
  const uint32_t macos_;
  mutable std::mutex mutex_;  // nothing else is called while it is held
  std::vector<mpsforge_metal_finding> kept_;
  uint64_t violations_ = 0;
};

}  // namespace mpsforge::metal
