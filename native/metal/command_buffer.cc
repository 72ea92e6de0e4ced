#include "command_buffer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "queue.h"
#include "random.h"

namespace mpsforge::metal {
namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

CommandBuffer::CommandBuffer(std::shared_ptr<Queue> queue, uint64_t number) : queue(std::move(queue)), number(number) {}

CommandBuffer::~CommandBuffer() {
  for (const Kept* kept : {&kept_for_work_, &kept_for_handlers_}) {
    for (const auto& [object, give_back] : *kept) give_back(object);
  }
}

Device& CommandBuffer::device() const { return *queue->device; }

std::string CommandBuffer::describe() const { return describe_buffer(number, *queue->name); }

Call CommandBuffer::call(const char* what, const ThreadPointer& thread) const {
  return {what, thread, number, queue->name};
}

bool CommandBuffer::enqueue(const ThreadPointer& thread) {
  const Call call = this->call("enqueue", thread);
  if (is_enqueued()) {
    const Call& earlier = enqueued_.thread ? enqueued_ : committed_;
    device().findings.violation(Rule::EnqueuedTwice, earlier.text(), call.text());
    return false;
  }
  enqueued_ = call;
  status_ = MPSFORGE_METAL_ENQUEUED;
  queue->enqueue(shared_from_this());
  return true;
}

bool CommandBuffer::commit(const ThreadPointer& thread, const char* what) {
  const Call call = this->call(what, thread);
  Device& device = this->device();
  if (is_committed()) {
    device.findings.violation(Rule::CommittedTwice, committed_.text(), call.text());
    return false;
  }
  if (open_) {
    device.findings.violation(Rule::CommittedWhileEncoding, opened_.text(), call.text());
    return false;
  }
  if (device.closed()) {
    device.used_after_close(call);
    return false;
  }
  if (device.checker.on()) {
    committed_clock_ = device.checker.release(thread->actor);
    join(committed_clock_, encoded_clock_);
    join(committed_clock_, last_clock_);
  }
  device.released(this);
  committed_ = call;
  if (device.config.models & MPSFORGE_METAL_MODEL_EARLY_WAIT) check_waits();
  if (!is_enqueued()) queue->enqueue(shared_from_this());
  status_ = MPSFORGE_METAL_COMMITTED;
  queue->commit(*this);
  return true;
}

// What comes before a wait in this buffer counts as committed, what comes after it does not.
void CommandBuffer::check_waits() {
  for (const Command& command : commands_) {
    if (const auto* signal = std::get_if<Signal>(&command.what)) signal->event->promise(signal->value);
    const auto* wait = std::get_if<Wait>(&command.what);
    if (!wait || wait->event->is_promised(wait->value)) continue;
    const std::string text = "a wait is committed before its signal: for " + wait->event->describe_wait(wait->value);
    device().findings.model(0, text, "", committed_.text());
  }
}

void CommandBuffer::add_handler(bool completed, const ThreadPointer& thread, mpsforge_metal_handler handler,
                                void* context) {
  const Call call = this->call(completed ? "add_completed_handler" : "add_scheduled_handler", thread);
  Findings& findings = device().findings;
  if (is_committed()) {
    findings.violation(completed ? Rule::CompletedHandlerAfterCommit : Rule::ScheduledHandlerAfterCommit,
                       committed_.text(), call.text());
    return;
  }
  if (completed && open_ && findings.applies(Rule::CompletedHandlerWhileEncoding)) {
    findings.violation(Rule::CompletedHandlerWhileEncoding, opened_.text(), call.text());
    return;
  }
  device().released(context);
  (completed ? completed_ : scheduled_).push_back({handler, context, device().checker.release(thread->actor)});
}

bool CommandBuffer::may_encode(Rule after_commit, Rule while_encoding, const ThreadPointer& thread, const char* what) {
  if (is_committed()) {
    device().findings.violation(after_commit, committed_.text(), call(what, thread).text());
    return false;
  }
  if (open_) {
    device().findings.violation(while_encoding, opened_.text(), call(what, thread).text());
    return false;
  }
  return true;
}

const std::shared_ptr<Device>& CommandBuffer::queue_device() const { return queue->device; }

void CommandBuffer::refuse_foreign(const std::string& label, const ThreadPointer& thread, const char* what) const {
  device().findings.violation(Rule::OtherDevice, "", call(what, thread).text(), label);
}

void CommandBuffer::signal(const ThreadPointer& thread, const std::shared_ptr<Event>& event, uint64_t value) {
  if (!may_encode(Rule::SignalAfterCommit, Rule::SignalWhileEncoding, thread, "encode_signal")) return;
  if (!accepts(*event, thread, "encode_signal")) return;
  add({Signal{event, value}, thread});
}

void CommandBuffer::wait(const ThreadPointer& thread, const std::shared_ptr<Event>& event, uint64_t value) {
  if (!may_encode(Rule::WaitAfterCommit, Rule::WaitWhileEncoding, thread, "encode_wait")) return;
  if (!accepts(*event, thread, "encode_wait")) return;
  add({Wait{event, value}, thread});
}

bool CommandBuffer::open(const void* encoder, bool compute, const ThreadPointer& thread, const char* what) {
  const Rule while_encoding = compute ? Rule::ComputeEncoderWhileEncoding : Rule::BlitEncoderWhileEncoding;
  if (!may_encode(Rule::EncoderAfterCommit, while_encoding, thread, what)) return false;
  open_ = encoder;
  opened_ = call(what, thread);
  return true;
}

void CommandBuffer::add(Command command) {
  encoded(command.thread);
  commands_.push_back(std::move(command));
}

void CommandBuffer::encoded(const ThreadPointer& thread) {
  Checker& checker = device().checker;
  if (!checker.on()) return;
  if (last_thread_ != thread) {
    join(encoded_clock_, last_clock_);
    last_thread_ = thread;
  }
  last_clock_ = checker.release(thread->actor);
}

void CommandBuffer::let_go() {
  if (--holders_ == 0 && !is_committed()) queue->abandon(*this);
}

void CommandBuffer::saw_end(const CpuThread& thread) {
  if (!is_ended()) return;
  device().checker.acquire(thread.actor, end_clock_);
  device().acquired(this);
}

uint32_t CommandBuffer::status(const CpuThread& thread) {
  saw_end(thread);
  return status_;
}

const char* CommandBuffer::error(const CpuThread& thread) {
  saw_end(thread);
  return error_.c_str();
}

mpsforge_metal_times CommandBuffer::times(const CpuThread& thread) {
  saw_end(thread);
  return times_;
}

bool CommandBuffer::keep(void* object, mpsforge_metal_function give_back, bool after_handlers) {
  if (is_ended()) return false;
  return (after_handlers ? kept_for_handlers_ : kept_for_work_).emplace(object, give_back).second;
}

void CommandBuffer::wait_until_scheduled(sync::Lock& lock, const ThreadPointer& thread) {
  const auto what = [this] { return "wait_until_scheduled, for " + describe_state(); };
  const auto done = [this] { return status_ >= MPSFORGE_METAL_SCHEDULED; };
  if (!device().block(lock, changed_, thread, what, done)) return;
  device().checker.acquire(thread->actor, committed_clock_);
  device().acquired(this);
}

void CommandBuffer::wait_until_completed(sync::Lock& lock, const ThreadPointer& thread) {
  const bool covers = wait_covers_handlers() && !device().handlers.runs(*thread, *this);
  const auto what = [this] { return "wait_until_completed, for " + describe_state(); };
  const auto done = [this, covers] { return is_ended() && (!covers || handlers_left_ == 0); };
  if (!device().block(lock, changed_, thread, what, done)) return;
  saw_end(*thread);
}

bool CommandBuffer::wait_covers_handlers() const {
  const auto& config = device().config;
  if (config.wait_covers_handlers != MPSFORGE_METAL_WAIT_BY_SEED) {
    return config.wait_covers_handlers == MPSFORGE_METAL_WAIT_COVERS;
  }
  return draw(config.seed, queue->sequence, ~number) & 1;
}

void CommandBuffer::schedule() {
  status_ = MPSFORGE_METAL_SCHEDULED;
  changed_.notify_all();
  times_.kernel_start = seconds();
  post(scheduled_, committed_clock_, false);
  scheduled_.clear();
}

void CommandBuffer::begin() {
  times_.kernel_end = times_.gpu_start = seconds();
  device().acquired(this);
}

void CommandBuffer::end(const std::string& error, Clock clock) {
  device().released(this);
  times_.gpu_end = seconds();
  error_ = error;
  status_ = error.empty() ? MPSFORGE_METAL_COMPLETED : MPSFORGE_METAL_ERROR;
  end_clock_ = std::move(clock);
  changed_.notify_all();
  handlers_left_ = completed_.size();
  post(kept_for_work_);
  post(completed_, end_clock_, true);
  post(kept_for_handlers_);
  completed_.clear();
  commands_.clear();
  opened_ = enqueued_ = Call();
  last_thread_.reset();
}

void CommandBuffer::post(const std::vector<Handler>& handlers, const Clock& clock, bool completed) {
  for (const Handler& handler : handlers) {
    Clock after = clock;
    join(after, handler.added);
    const auto function = [function = handler.function, context = handler.context, self = shared_from_this()] {
      self->device().acquired(self.get());
      self->device().acquired(context);
      mpsforge_metal_command_buffer borrowed(self, false, true);
      function(context, &borrowed);
    };
    device().handlers.post({function, std::move(after), shared_from_this(), completed});
  }
}

void CommandBuffer::post(Kept& kept) {
  if (kept.empty()) return;
  const auto function = [kept = std::move(kept), self = shared_from_this()] {
    self->device().acquired(self.get());
    for (const auto& [object, give_back] : kept) give_back(object);
  };
  kept.clear();
  device().handlers.post({function, end_clock_, nullptr, false, true});
}

void CommandBuffer::handler_ran(const CpuThread& handler_thread) {
  // A wait that is said to cover the handlers comes after what they did; one that merely happens to does not.
  if (device().config.wait_covers_handlers == MPSFORGE_METAL_WAIT_COVERS) {
    join(end_clock_, device().checker.release(handler_thread.actor));
    device().released(this);
  }
  --handlers_left_;
  changed_.notify_all();
}

bool CommandBuffer::will_signal(const Event& event, uint64_t value) const {
  if (injected & (1u << MPSFORGE_METAL_INJECT_ERROR)) return false;
  // The command that has begun may be the signal, not sent yet.
  for (size_t i = first_left(); i < commands_.size(); ++i) {
    const auto* signal = std::get_if<Signal>(&commands_[i].what);
    if (signal && signal->event.get() == &event && signal->value >= value) return true;
  }
  return false;
}

uint64_t CommandBuffer::will_wait(const Event& event) const {
  if (injected & (1u << MPSFORGE_METAL_INJECT_ERROR)) return 0;
  uint64_t highest = 0;
  for (size_t i = first_left(); i < commands_.size(); ++i) {
    const auto* wait = std::get_if<Wait>(&commands_[i].what);
    if (wait && wait->event.get() == &event && wait->value > event.value_now()) {
      highest = std::max(highest, wait->value);
    }
  }
  return highest;
}

std::string CommandBuffer::describe_state() const {
  const std::string name = describe();
  if (!is_committed()) return name + ", which was never committed";
  if (is_ended()) return name + ", whose completed handlers have not all run";
  const std::string ahead = queue->describe_ahead(*this);
  if (!ahead.empty()) return name + ", which comes after " + ahead;
  return name + ", at command " + std::to_string(begun);
}

}  // namespace mpsforge::metal

using mpsforge::metal::CommandBuffer;

mpsforge_metal_command_buffer::mpsforge_metal_command_buffer(std::shared_ptr<CommandBuffer> root, bool mps,
                                                             bool borrowed)
    : Handle(mpsforge::metal::HandleKind::CommandBuffer),
      device(root->queue->device),
      mps(mps),
      borrowed(borrowed),
      root(std::move(root)) {}

std::string mpsforge_metal_command_buffer::label() const { return root ? root->describe() : "one without a root"; }

void mpsforge_metal_command_buffer::commit_and_continue(mpsforge::sync::Lock& lock,
                                                        const mpsforge::metal::ThreadPointer& thread,
                                                        const char* call) {
  using mpsforge::metal::Rule;
  const std::shared_ptr<CommandBuffer> old = root;
  if (!mps) {
    device->findings.violation(Rule::ContinuedPlainBuffer, "", old->call(call, thread).text());
    return;
  }
  if (!old->commit(thread, call)) return;
  auto next = old->queue->create(lock, thread, call);
  // Another thread that used the wrapper meanwhile met the committed root; what it did there was refused.
  root = next;
  if (next) next->hold();
  old->let_go();
}
