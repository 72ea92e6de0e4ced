#include "findings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mpsforge::metal {
namespace {

struct Text {
  Rule rule;
  uint32_t signature;  // of docs/dev/spec/metal.md, 0: not seen in the field
  const char* method;  // that asserts; nullptr: the phrase is a sentence of ours, because Metal's text is not known
  const char* phrase;
  uint32_t since;    // macOS, 100 * major + minor; 0: every version
  bool own = false;  // nothing public shows that Metal refuses it: the finding says so
};

// Signatures, methods and phrases are those of docs/dev/spec/metal.md, except where the method is nullptr. Line
// numbers are left out: they differ from one macOS to the next.
const Text kTexts[] = {
    {Rule::ScheduledHandlerAfterCommit, 1, "-[_MTLCommandBuffer addScheduledHandler:]",
     "Scheduled handler provided after commit call", 0},
    {Rule::CompletedHandlerAfterCommit, 2, "-[_MTLCommandBuffer addCompletedHandler:]",
     "Completed handler provided after commit call", 0},
    // https://github.com/ml-explore/mlx/pull/3714 found that macOS 26.4 aborts here; its text is not known publicly.
    {Rule::CompletedHandlerWhileEncoding, 0, nullptr,
     "completed handler added while a command encoder is open, on which macOS 26.4 aborts", 2604},
    {Rule::CommittedTwice, 3, "-[IOGPUMetalCommandBuffer validate]", "commit an already committed command buffer", 0},
    {Rule::CommittedWhileEncoding, 4, "-[IOGPUMetalCommandBuffer validate]",
     "commit command buffer with uncommitted encoder", 0},
    {Rule::ComputeEncoderWhileEncoding, 5,
     "-[AGXG16XFamilyCommandBuffer tryCoalescingPreviousComputeCommandEncoderWithConfig:nextEncoderClass:]",
     "A command encoder is already encoding to this command buffer", 0},
    {Rule::BlitEncoderWhileEncoding, 5, "-[AGXG16XFamilyCommandBuffer blitCommandEncoderCommon:]",
     "A command encoder is already encoding to this command buffer", 0},
    {Rule::EncoderAfterCommit, 6, "-[IOGPUMetalCommandBuffer setCurrentCommandEncoder:]",
     "_status < MTLCommandBufferStatusCommitted", 0},
    // Apple's page of a command buffer's status forbids these too (metal rule 6); the fields saw only the encoder's
    // text.
    {Rule::SignalAfterCommit, 6, "-[IOGPUMetalCommandBuffer encodeSignalEvent:value:]",
     "_status < MTLCommandBufferStatusCommitted", 0},
    {Rule::WaitAfterCommit, 6, "-[IOGPUMetalCommandBuffer encodeWaitForEvent:value:]",
     "_status < MTLCommandBufferStatusCommitted", 0},
    {Rule::SignalWhileEncoding, 7, "-[IOGPUMetalCommandBuffer encodeSignalEvent:value:]",
     "encodeSignalEvent:value: with uncommitted encoder", 0},
    {Rule::WaitWhileEncoding, 7, "-[IOGPUMetalCommandBuffer encodeWaitForEvent:value:]",
     "encodeWaitForEvent:value: with uncommitted encoder", 0},
    {Rule::EnqueuedTwice, 8, "-[_MTLCommandBuffer enqueue]", "enqueue an already enqueued command buffer", 0},
    {Rule::EncoderReleasedOpen, 9, "-[_MTLCommandEncoder dealloc]", "Command encoder released without endEncoding", 0},
    {Rule::SyncOnOwnQueue, 16, "BUG IN CLIENT OF LIBDISPATCH",
     "dispatch_sync called on queue already owned by current thread", 0},
    {Rule::EndedTwice, 0, nullptr, "end_encoding of an encoder that has ended", 0, true},
    {Rule::EncodedAfterEnd, 0, nullptr, "encoding with an encoder that has ended", 0, true},
    {Rule::OutOfRange, 0, nullptr, "range outside of the buffer", 0, true},
    {Rule::BlitOnComputeEncoder, 0, nullptr, "fill or copy on a compute encoder", 0, true},
    {Rule::DispatchOnBlitEncoder, 0, nullptr, "compute call on a blit encoder", 0, true},
    {Rule::DispatchWithoutKernel, 0, nullptr, "dispatch without a kernel", 0, true},
    {Rule::UnknownKernel, 0, nullptr, "unknown kernel", 0, true},
    {Rule::UnboundArgument, 0, nullptr, "kernel argument without a buffer", 0, true},
    {Rule::UndeclaredAccess, 0, nullptr, "access that is declared neither a read nor a write", 0, true},
    {Rule::PrivateMemory, 0, nullptr, "CPU access of a private buffer", 0},
    {Rule::ForeignEncoder, 0, nullptr, "the encoder is not the open one of the command buffer", 0, true},
    {Rule::EventNotRising, 0, nullptr, "event value that does not rise", 0},
    {Rule::ContinuedPlainBuffer, 0, nullptr, "commit_and_continue of an MTLCommandBuffer", 0, true},
    {Rule::OtherDevice, 0, nullptr, "object of another device", 0, true},
    // Apple's page on setBytes:length:atIndex: allows 4 KB.
    {Rule::BytesTooLong, 0, nullptr, "more than 4096 bytes given to an encoder", 0},
    // The Metal feature set tables' "Maximum threads per threadgroup".
    {Rule::GroupSize, 0, nullptr, "threadgroup that has not 1 to 1024 threads", 0},
    {Rule::NotResident, 0, nullptr, "address outside of the buffers that the encoder binds or uses", 0},
    // Metal Shading Language Specification, 6.9.1: all threads of the threadgroup must execute the barrier.
    {Rule::Divergence, 0, nullptr, "barrier that not all threads of the threadgroup reach", 0},
    {Rule::KernelRace, 0, nullptr, "two threads of a grid use one byte, and no barrier or atomic operation orders them",
     0},
};

const Text& text_of(Rule rule) {
  return *std::find_if(std::begin(kTexts), std::end(kTexts), [rule](const Text& text) { return text.rule == rule; });
}

// As Metal prints it, or as libdispatch does.
std::string message_of(const Text& text) {
  if (!text.method) return text.phrase;
  const std::string method = text.method;
  if (method[0] != '-') return method + ": " + text.phrase;
  return method + ": failed assertion `" + text.phrase + "'";
}

// Findings kept of one device, about 5 MB; a program that makes more of them is understood from fewer.
constexpr size_t kKept = 4096;

// Cuts at the end of a UTF-8 character.
template <size_t size>
void put(char (&to)[size], const std::string& from) {
  size_t length = std::min(from.size(), size - 1);
  if (length < from.size()) {
    while (length > 0 && (static_cast<unsigned char>(from[length]) & 0xc0u) == 0x80u) --length;
  }
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}

}  // namespace

Findings::Findings(uint32_t on_violation, uint32_t macos)
    : aborts_(on_violation == MPSFORGE_METAL_ABORT), macos_(macos == 0 ? UINT32_MAX : macos) {}

bool Findings::applies(Rule rule) const { return macos_ >= text_of(rule).since; }

void Findings::violation(Rule rule, const std::string& first, const std::string& second, const std::string& detail) {
  const Text& text = text_of(rule);
  const std::string message =
      message_of(text) + (text.own ? " (a rule of our own)" : "") + (detail.empty() ? "" : ": " + detail);
  abort_if_asked(message, first, second);
  add(MPSFORGE_METAL_VIOLATION, text.signature, message, first, second);
}

void Findings::model(uint32_t signature, const std::string& message, const std::string& first,
                     const std::string& second) {
  abort_if_asked(message, first, second);
  add(MPSFORGE_METAL_MODEL, signature, message, first, second);
}

void Findings::abort_if_asked(const std::string& message, const std::string& first, const std::string& second) const {
  if (!aborts_) return;
  std::fprintf(stderr, "%s\n%s%s%s\n", message.c_str(), second.c_str(), first.empty() ? "" : ", after ", first.c_str());
  std::abort();
}

void Findings::add(uint32_t kind, uint32_t signature, const std::string& message, const std::string& first,
                   const std::string& second, const std::string& history) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (kind == MPSFORGE_METAL_VIOLATION) ++violations_;
  if (kept_.size() == kKept) return;
  mpsforge_metal_finding& finding = kept_.emplace_back();
  finding.kind = kind;
  finding.signature = signature;
  put(finding.message, message);
  put(finding.first, first);
  put(finding.second, second);
  put(finding.history, history);
}

size_t Findings::copy(mpsforge_metal_finding* out, size_t capacity) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (out) std::copy_n(kept_.begin(), std::min(capacity, kept_.size()), out);
  return kept_.size();
}

uint64_t Findings::violations() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return violations_;
}

}  // namespace mpsforge::metal
