// Blocks: copied from the stack to the heap with what they capture, and given back. The layout is that of the Block
// ABI which clang documents.
#include <Block.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../engine.h"
#include "support.h"

namespace {

// Bits of a block's and a variable's flags.
enum : int {
  kCount = 0xfffe,  // references, from bit 1
  kOne = 2,
  kOnHeap = 1 << 24,
  kHasHelpers = 1 << 25,
  kGlobal = 1 << 28
};
constexpr unsigned kVariableLayoutMask = 0xfu << 28;
constexpr unsigned kVariableExtendedLayout = 1u << 28;

// What a helper says it copies or gives back.
enum : int { kObject = 3, kBlock = 7, kVariable = 8, kWeak = 16, kFromVariable = 128 };

struct Descriptor {
  unsigned long reserved;
  unsigned long size;
  void (*copy)(void* to, const void* from);
  void (*dispose)(const void* block);
};

struct Block {
  void* isa;
  std::atomic<int> flags;
  int reserved;
  void (*invoke)();
  Descriptor* descriptor;
};

// A __block variable. The copy on the heap is the one that forwarding leads to.
struct Variable {
  void* isa;
  Variable* forwarding;
  std::atomic<int> flags;
  int size;
  // If it has helpers.
  void (*keep)(Variable* to, Variable* from);
  void (*destroy)(Variable* variable);
};

void take(std::atomic<int>& flags) { flags.fetch_add(kOne, std::memory_order_relaxed); }

// True if it was the last reference. What others did before they gave theirs back happened before the end.
bool give(std::atomic<int>& flags, const void* what) {
  const int before = flags.fetch_sub(kOne, std::memory_order_release);
  if ((before & kCount) == 0) mpsforge::objc::fail("block or __block variable %p is released too often", what);
  if ((before & kCount) != kOne) return false;
  flags.load(std::memory_order_acquire);
  return true;
}

void* get_memory(size_t size) {
  void* memory = std::malloc(size);
  if (!memory) mpsforge::objc::fail("no memory for a block of %zu bytes", size);
  return memory;
}

Variable* copy_variable(Variable* variable) {
  Variable* forwarded = variable->forwarding;
  if (forwarded->flags.load(std::memory_order_relaxed) & kOnHeap) {
    take(forwarded->flags);
    return forwarded;
  }
  const auto size = static_cast<size_t>(variable->size);
  auto* copy = static_cast<Variable*>(get_memory(size));
  const int flags = variable->flags.load(std::memory_order_relaxed);
  copy->isa = nullptr;
  copy->forwarding = copy;
  // Two references: the block's, and that of the frame where the variable was born.
  copy->flags.store((flags & ~kCount) | kOnHeap | 2 * kOne, std::memory_order_relaxed);
  copy->size = variable->size;
  if (flags & kHasHelpers) {
    copy->keep = variable->keep;
    copy->destroy = variable->destroy;
    if ((static_cast<unsigned>(flags) & kVariableLayoutMask) == kVariableExtendedLayout) {
      std::memcpy(copy + 1, variable + 1, sizeof(void*));
    }
    variable->keep(copy, variable);
  } else {
    constexpr size_t kPlain = offsetof(Variable, keep);
    std::memcpy(reinterpret_cast<char*>(copy) + kPlain, reinterpret_cast<char*>(variable) + kPlain, size - kPlain);
  }
  variable->forwarding = copy;
  return copy;
}

void release_variable(Variable* variable) {
  variable = variable->forwarding;
  const int flags = variable->flags.load(std::memory_order_relaxed);
  if (!(flags & kOnHeap) || !give(variable->flags, variable)) return;
  if (flags & kHasHelpers) variable->destroy(variable);
  std::free(variable);
}

}  // namespace

extern "C" {

extern void* _NSConcreteMallocBlock;

void* _Block_copy(const void* argument) {
  auto* block = static_cast<Block*>(const_cast<void*>(argument));
  if (!block) return nullptr;
  const int flags = block->flags.load(std::memory_order_relaxed);
  if (flags & kGlobal) return block;
  if (flags & kOnHeap) {
    take(block->flags);
    return block;
  }
  auto* copy = static_cast<Block*>(get_memory(block->descriptor->size));
  std::memcpy(static_cast<void*>(copy), block, block->descriptor->size);
  copy->isa = &_NSConcreteMallocBlock;
  copy->flags.store((flags & ~kCount) | kOnHeap | kOne, std::memory_order_relaxed);
  if (flags & kHasHelpers) copy->descriptor->copy(copy, block);
  return copy;
}

void _Block_release(const void* argument) {
  auto* block = static_cast<Block*>(const_cast<void*>(argument));
  if (!block) return;
  const int flags = block->flags.load(std::memory_order_relaxed);
  if (!(flags & kOnHeap) || !give(block->flags, block)) return;
  if (flags & kHasHelpers) block->descriptor->dispose(block);
  std::free(block);
}

// Called by copy helpers for each captured object, block and __block variable.
void _Block_object_assign(void* to, const void* object, int flags) {
  auto** target = static_cast<const void**>(to);
  switch (flags) {
    case kObject:
      *target = [static_cast<id>(const_cast<void*>(object)) retain];
      break;
    case kBlock:
      *target = _Block_copy(object);
      break;
    case kVariable:
    case kVariable | kWeak:
      *target = copy_variable(static_cast<Variable*>(const_cast<void*>(object)));
      break;
    case kFromVariable | kObject:
    case kFromVariable | kBlock:
    case kFromVariable | kObject | kWeak:
    case kFromVariable | kBlock | kWeak:
      // A __block variable does not retain what it points to.
      *target = object;
      break;
    default:
      mpsforge::objc::fail("_Block_object_assign does not know flags %d", flags);
  }
}

void _Block_object_dispose(const void* object, int flags) {
  switch (flags) {
    case kObject:
      [static_cast<id>(const_cast<void*>(object)) release];
      break;
    case kBlock:
      _Block_release(object);
      break;
    case kVariable:
    case kVariable | kWeak:
      release_variable(static_cast<Variable*>(const_cast<void*>(object)));
      break;
    case kFromVariable | kObject:
    case kFromVariable | kBlock:
    case kFromVariable | kObject | kWeak:
    case kFromVariable | kBlock | kWeak:
      break;
    default:
      mpsforge::objc::fail("_Block_object_dispose does not know flags %d", flags);
  }
}

}  // extern "C"

// Blocks are objects: they may be copied, retained and put into collections.
@interface NSBlock : NSObject <NSCopying>
@end

@implementation NSBlock

- (id)copyWithZone:(NSZone*)zone {
  return static_cast<id>(_Block_copy(self));
}

- (id)copy {
  return static_cast<id>(_Block_copy(self));
}

- (instancetype)retain {
  return static_cast<id>(_Block_copy(self));
}

- (oneway void)release {
  _Block_release(self);
}

- (NSUInteger)retainCount {
  return 1;
}

@end

@interface NSStackBlock : NSBlock
@end
@implementation NSStackBlock

// A stack block stays where it is when it is retained; only a copy outlives its frame.
- (instancetype)retain {
  return self;
}

- (oneway void)release {
}

- (instancetype)autorelease {
  return self;
}

@end

@interface NSMallocBlock : NSBlock
@end
@implementation NSMallocBlock
@end

@interface NSGlobalBlock : NSBlock
@end
@implementation NSGlobalBlock
@end

// The names under which the compiler knows these classes.
asm(".globl _NSConcreteStackBlock\n.set _NSConcreteStackBlock, _OBJC_CLASS_NSStackBlock\n"
    ".globl _NSConcreteMallocBlock\n.set _NSConcreteMallocBlock, _OBJC_CLASS_NSMallocBlock\n"
    ".globl _NSConcreteGlobalBlock\n.set _NSConcreteGlobalBlock, _OBJC_CLASS_NSGlobalBlock\n");
