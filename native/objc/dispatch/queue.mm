// Dispatch queues. A serial one is a serial queue of the engine: it decides who runs when, finds deadlocks, and knows
// the order for its checker. ThreadSanitizer, which does not look into the engine, learns that order here: each block
// of a queue happens after the one before, and after what had happened when it was put in.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "objects.h"

using mpsforge::objc::checked;
using mpsforge::objc::checked_block;
using mpsforge::objc::EngineCall;
using mpsforge::objc::OutsideEngine;
using mpsforge::objc::Specific;

const struct dispatch_queue_attr_s {
} mpsforge_dispatch_concurrent;

namespace {

// The queues whose blocks the calling thread runs, the innermost first. Plain data: static destructors of the program
// dispatch too.
struct Running {
  dispatch_queue_t queue;
  Running* outer;
};
thread_local Running* running = nullptr;

// An exception that leaves a block ends the process, as on macOS.
void run(dispatch_queue_t queue, dispatch_function_t work, void* context) noexcept {
  Running frame{queue, running};
  running = &frame;
  work(context);
  running = frame.outer;
}

struct Work {
  dispatch_queue_t queue;
  dispatch_function_t function;
  void* context;
  bool done = false;
};

void run_on_queue(void* argument) {
  auto* work = static_cast<Work*>(argument);
  run(work->queue, work->function, work->context);
}

// The turn on the queue has come; if it has a target, the turn on that is waited for as well.
void run_in_turn(Work* work) {
  if (work->queue->target) {
    dispatch_sync_f(work->queue->target, work, run_on_queue);
  } else {
    run_on_queue(work);
  }
}

void run_synchronous(void* argument) {
  auto* work = static_cast<Work*>(argument);
  OutsideEngine outside;
  mpsforge::objc::sanitizer_acquire(work->queue);
  run_in_turn(work);
  work->done = true;
  mpsforge::objc::sanitizer_release(work->queue);
}

void run_asynchronous(void* argument) {
  OutsideEngine outside;
  mpsforge::objc::sanitizer_acquire(argument);
  auto* work = static_cast<Work*>(argument);
  dispatch_queue_t queue = work->queue;
  mpsforge::objc::sanitizer_acquire(queue);
  run_in_turn(work);
  mpsforge::objc::sanitizer_release(queue);
  delete work;
  queue->release();
}

bool on_main_thread() { return syscall(SYS_gettid) == getpid(); }

bool is_current(dispatch_queue_t queue) {
  if (queue->kind == dispatch_queue_s::Kind::kMain) return !running && on_main_thread();
  for (const Running* frame = running; frame; frame = frame->outer) {
    if (frame->queue == queue) return true;
  }
  return false;
}

void* context_of(dispatch_queue_t queue, const void* key) {
  for (const Specific* each = queue->specifics.load(std::memory_order_acquire); each; each = each->next) {
    if (each->key == key) return each->context.load(std::memory_order_acquire);
  }
  return nullptr;
}

dispatch_queue_t immortal(const char* label, dispatch_queue_s::Kind kind) { return new dispatch_queue_s(label, kind); }

void refuse_barrier(dispatch_queue_t queue, const char* call) {
  if (checked(queue, call)->kind == dispatch_queue_s::Kind::kConcurrent) {
    mpsforge::objc::fail("%s on the concurrent queue %s is not implemented", call, queue->label.c_str());
  }
}

}  // namespace

dispatch_queue_s::dispatch_queue_s(const char* label, Kind kind)
    : DispatchObject("queue"), label(label ? label : ""), kind(kind) {
  if (kind != Kind::kSerial) return;
  mpsforge_metal_device* device = mpsforge::objc::device();
  EngineCall call;
  serial = mpsforge::objc::api().serial_create(device, this->label.c_str());
}

dispatch_queue_s::~dispatch_queue_s() {
  if (target) target->release();
  if (serial) {
    EngineCall call;
    mpsforge::objc::api().serial_release(serial);
  }
  for (Specific* each = specifics.load(std::memory_order_acquire); each;) {
    Specific* next = each->next;
    void* context = each->context.load(std::memory_order_acquire);
    if (context && each->destructor) each->destructor(context);
    delete each;
    each = next;
  }
}

void mpsforge::objc::call_block(void* block) { reinterpret_cast<dispatch_block_t>(block)(); }

void mpsforge::objc::call_and_release_block(void* block) {
  call_block(block);
  _Block_release(block);
}

extern "C" {

dispatch_queue_t dispatch_queue_create(const char* label, dispatch_queue_attr_t attribute) {
  return new dispatch_queue_s(label, attribute == DISPATCH_QUEUE_CONCURRENT ? dispatch_queue_s::Kind::kConcurrent
                                                                            : dispatch_queue_s::Kind::kSerial);
}

// A serial queue's target is another serial one, whose blocks it takes turns with, or the default, which holds nothing
// up.
dispatch_queue_t dispatch_queue_create_with_target(const char* label, dispatch_queue_attr_t attribute,
                                                   dispatch_queue_t target) {
  dispatch_queue_t made = dispatch_queue_create(label, attribute);
  if (!target || target->kind == dispatch_queue_s::Kind::kConcurrent) return made;
  if (made->kind != dispatch_queue_s::Kind::kSerial || target->kind != dispatch_queue_s::Kind::kSerial) {
    mpsforge::objc::fail("dispatch_queue_create_with_target: queue %s on queue %s is not implemented",
                         made->label.c_str(), target->label.c_str());
  }
  target->retain();
  made->target = target;
  return made;
}

// How urgent a queue is makes no difference here.
dispatch_queue_attr_t dispatch_queue_attr_make_with_qos_class(dispatch_queue_attr_t attribute, dispatch_qos_class_t,
                                                              int) {
  return attribute;
}

dispatch_queue_t dispatch_get_global_queue(intptr_t, uintptr_t) {
  static dispatch_queue_t const only = immortal("com.apple.root.default-qos", dispatch_queue_s::Kind::kConcurrent);
  return only;
}

dispatch_queue_t dispatch_get_main_queue(void) {
  static dispatch_queue_t const only = immortal("com.apple.main-thread", dispatch_queue_s::Kind::kMain);
  return only;
}

const char* dispatch_queue_get_label(dispatch_queue_t queue) {
  if (queue) return queue->label.c_str();
  if (running) return running->queue->label.c_str();
  return on_main_thread() ? dispatch_get_main_queue()->label.c_str() : "";
}

void dispatch_sync_f(dispatch_queue_t queue, void* context, dispatch_function_t function) {
  checked(queue, "dispatch_sync");
  switch (queue->kind) {
    case dispatch_queue_s::Kind::kConcurrent:
      run(queue, function, context);
      return;
    case dispatch_queue_s::Kind::kMain:
      mpsforge::objc::fail("dispatch_sync to the main queue waits for ever: no run loop serves it");
    case dispatch_queue_s::Kind::kSerial:
      Work work{queue, function, context};
      {
        EngineCall call;
        mpsforge::objc::api().serial_sync(queue->serial, run_synchronous, &work);
      }
      if (!work.done) mpsforge::objc::came_back_undone("dispatch_sync");
      return;
  }
}

void dispatch_async_f(dispatch_queue_t queue, void* context, dispatch_function_t function) {
  checked(queue, "dispatch_async");
  if (queue->kind == dispatch_queue_s::Kind::kMain) {
    mpsforge::objc::fail("dispatch_async to the main queue: no run loop serves it");
  }
  queue->retain();
  if (queue->kind == dispatch_queue_s::Kind::kConcurrent) {
    const void* token = function == mpsforge::objc::call_and_release_block ? context : nullptr;
    mpsforge::objc::order_release(token);
    std::thread([queue, context, function, token] {
      mpsforge::objc::order_acquire(token);
      run(queue, function, context);
      queue->release();
    }).detach();
    return;
  }
  auto* work = new Work{queue, function, context};
  mpsforge::objc::sanitizer_release(work);
  EngineCall call;
  mpsforge::objc::api().serial_async(queue->serial, run_asynchronous, work);
}

void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block) {
  dispatch_sync_f(queue, static_cast<void*>(checked_block(block, "dispatch_sync")), mpsforge::objc::call_block);
}

void dispatch_async(dispatch_queue_t queue, dispatch_block_t block) {
  checked(queue, "dispatch_async");
  dispatch_async_f(queue, _Block_copy(checked_block(block, "dispatch_async")), mpsforge::objc::call_and_release_block);
}

void dispatch_barrier_sync(dispatch_queue_t queue, dispatch_block_t block) {
  refuse_barrier(queue, "dispatch_barrier_sync");
  dispatch_sync(queue, block);
}

void dispatch_barrier_async(dispatch_queue_t queue, dispatch_block_t block) {
  refuse_barrier(queue, "dispatch_barrier_async");
  dispatch_async(queue, block);
}

// In order, on the calling thread: one of the ways in which the iterations may run.
void dispatch_apply_f(size_t iterations, dispatch_queue_t, void* context, void (*work)(void* context, size_t index)) {
  for (size_t i = 0; i < iterations; ++i) work(context, i);
}

void dispatch_apply(size_t iterations, dispatch_queue_t, void (^block)(size_t index)) {
  for (size_t i = 0; i < iterations; ++i) block(i);
}

void dispatch_queue_set_specific(dispatch_queue_t queue, const void* key, void* context,
                                 dispatch_function_t destructor) {
  checked(queue, "dispatch_queue_set_specific");
  for (Specific* each = queue->specifics.load(std::memory_order_acquire); each; each = each->next) {
    if (each->key != key) continue;
    void* old = each->context.exchange(context, std::memory_order_acq_rel);
    if (old && old != context && each->destructor) each->destructor(old);
    each->destructor = destructor;
    return;
  }
  auto* made = new Specific{key, {context}, destructor, queue->specifics.load(std::memory_order_acquire)};
  while (!queue->specifics.compare_exchange_weak(made->next, made, std::memory_order_acq_rel)) {
  }
}

void* dispatch_queue_get_specific(dispatch_queue_t queue, const void* key) {
  return context_of(checked(queue, "dispatch_queue_get_specific"), key);
}

void* dispatch_get_specific(const void* key) {
  for (dispatch_queue_t queue = running ? running->queue : nullptr; queue; queue = queue->target) {
    if (void* context = context_of(queue, key)) return context;
  }
  return nullptr;
}

void dispatch_assert_queue(dispatch_queue_t queue) {
  if (!is_current(checked(queue, "dispatch_assert_queue"))) {
    mpsforge::objc::fail("block was expected to execute on queue [%s (%p)]", queue->label.c_str(),
                         static_cast<void*>(queue));
  }
}

void dispatch_assert_queue_not(dispatch_queue_t queue) {
  if (is_current(checked(queue, "dispatch_assert_queue_not"))) {
    mpsforge::objc::fail("block was expected not to execute on queue [%s (%p)]", queue->label.c_str(),
                         static_cast<void*>(queue));
  }
}

}  // extern "C"
