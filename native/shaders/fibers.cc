#include "fibers.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "races.h"

namespace mpsforge::shaders {
namespace {

constexpr uint32_t kThreads = 1024;   // that a threadgroup may have
constexpr size_t kStack = 256 << 10;  // for each, touched as far as it is used

}  // namespace
}  // namespace mpsforge::shaders

// Keeps what a call must keep, on the stack, and goes on with another one. There is no signal mask to keep, as
// swapcontext would, with a call of the system.
extern "C" void mpsforge_shader_switch(void** from, void* to);
#if defined(__x86_64__)
asm(R"(
.text
.globl mpsforge_shader_switch
.hidden mpsforge_shader_switch
.type mpsforge_shader_switch,@function
mpsforge_shader_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mpsforge_shader_switch, .-mpsforge_shader_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl mpsforge_shader_switch
.hidden mpsforge_shader_switch
.type mpsforge_shader_switch,%function
mpsforge_shader_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size mpsforge_shader_switch, .-mpsforge_shader_switch
)");
#else
#error "no switch of stacks for this processor"
#endif

namespace mpsforge::shaders {
namespace {

// Whose turn it is, for the first instructions of a new fiber.
thread_local Fibers* starting = nullptr;

// A stack on which mpsforge_shader_switch returns into start.
void* fresh_stack(char* stack, void (*start)()) {
  auto* top = reinterpret_cast<uint64_t*>(stack + kStack);
#if defined(__x86_64__)
  // As after a call: 8 above a multiple of 16 when start begins.
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(start);
  top -= 6;
  for (int i = 0; i < 6; ++i) top[i] = 0;
#else
  top -= 20;
  for (int i = 0; i < 20; ++i) top[i] = 0;
  top[11] = reinterpret_cast<uint64_t>(start);
#endif
  return top;
}

}  // namespace

Fibers::Fibers() : fibers_(kThreads) {
  void* made = mmap(nullptr, kThreads * kStack, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (made == MAP_FAILED) {
    std::fprintf(stderr, "mpsforge: no memory for the stacks of a threadgroup\n");
    std::abort();
  }
  stacks_ = static_cast<char*>(made);
}

Fibers::~Fibers() { munmap(stacks_, kThreads * kStack); }

void Fibers::main(Fibers* self) {
  self->kernel_->threads(self->run_, self->current_, 1);
  self->switch_away(State::Ended, 0, 0);
}

void Fibers::switch_away(State state, uint32_t place, uint32_t memory) {
  Fiber& fiber = fibers_[current_];
  fiber.state = state;
  fiber.place = place;
  fiber.memory = memory;
  mpsforge_shader_switch(&fiber.stack_pointer, scheduler_);
}

void Fibers::wait_for_group(uint32_t place, uint32_t memory) { switch_away(State::Group, place, memory); }

void Fibers::wait_for_lanes(uint32_t place, Together together, void* data, uint32_t memory) {
  fibers_[current_].together = together;
  fibers_[current_].data = data;
  switch_away(State::Lanes, place, memory);
}

void Fibers::run_group(const Kernel* kernel, Run* run) {
  kernel_ = kernel;
  run_ = run;
  count_ = run->this_group[0] * run->this_group[1] * run->this_group[2];
  for (uint32_t i = 0; i < count_; ++i) {
    fibers_[i].stack_pointer = fresh_stack(stacks_ + i * kStack, [] { main(starting); });
    fibers_[i].state = State::Ready;
  }
  do {
    for (current_ = 0; current_ < count_; ++current_) {
      if (fibers_[current_].state != State::Ready) continue;
      starting = this;
      *run->thread = current_;
      mpsforge_shader_switch(&scheduler_, fibers_[current_].stack_pointer);
    }
  } while (release_lanes() || release_group());
}

bool Fibers::release_lanes() {
  bool any = false;
  for (uint32_t first = 0; first < count_; first += kSimdWidth) {
    const uint32_t end = first + kSimdWidth < count_ ? first + kSimdWidth : count_;
    const Fiber* earliest = nullptr;
    for (uint32_t i = first; i < end; ++i) {
      const Fiber& fiber = fibers_[i];
      if (fiber.state == State::Lanes && (!earliest || fiber.place < earliest->place)) earliest = &fiber;
    }
    if (!earliest) continue;
    void* data[kSimdWidth] = {};
    const uint32_t place = earliest->place;
    const Together together = earliest->together;
    for (uint32_t i = first; i < end; ++i) {
      if (fibers_[i].state != State::Lanes || fibers_[i].place != place) continue;
      data[i - first] = fibers_[i].data;
      fibers_[i].state = State::Ready;
    }
    if (run_->races) {
      *run_->thread = first;  // moves of a matrix are of the whole SIMD group
      run_->races->lanes_met(first / kSimdWidth, earliest->memory);
    }
    if (together) together(run_, data);
    any = true;
  }
  return any;
}

// Everybody waits at a threadgroup barrier, or has ended.
bool Fibers::release_group() {
  uint32_t waiting = count_;  // the first that waits
  bool same = true;
  for (uint32_t i = 0; i < count_; ++i) {
    if (fibers_[i].state != State::Group) continue;
    if (waiting == count_) waiting = i;
    same = same && fibers_[i].place == fibers_[waiting].place;
  }
  if (waiting == count_) return false;
  for (uint32_t i = 0; i < count_; ++i) {
    same = same && fibers_[i].state == State::Group;
    fibers_[i].state = fibers_[i].state == State::Group ? State::Ready : fibers_[i].state;
  }
  if (!same) diverged(waiting);
  if (run_->races) run_->races->group_met(fibers_[waiting].memory);
  return true;
}

void Fibers::diverged(uint32_t thread) {
  *run_->thread = thread;
  Refused what{};
  what.problem = Problem::Divergence;
  run_->refuse(run_->owner, what);
}

}  // namespace mpsforge::shaders
