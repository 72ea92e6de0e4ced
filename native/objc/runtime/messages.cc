// Finding the function of a message: each class has a table of all methods that it answers to, inherited ones included.
// A table never changes once it can be seen, so sending takes no lock.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "runtime.h"

namespace mpsforge::objc {

struct Table {
  struct Entry {
    const char* name;
    mpsforge_imp function;
  };
  size_t mask;
  Entry* entries;

  static size_t hash(const char* name) { return (reinterpret_cast<uintptr_t>(name) >> 4) * 0x9E3779B1u >> 4; }

  mpsforge_imp find(const char* name) const {
    for (size_t i = hash(name) & mask; entries[i].name; i = (i + 1) & mask) {
      if (entries[i].name == name) return entries[i].function;
    }
    return nullptr;
  }
};

namespace {

const Table* make_table(const Class* cls) {
  std::unordered_map<const char*, mpsforge_imp> methods;
  for (const Class* each = cls; each; each = each->superclass) {
    for (const MethodList* list = each->methods; list; list = list->next) {
      for (int i = 0; i < list->count; ++i) {
        if (newer_method(cls, list->methods[i].name)) continue;
        methods.emplace(intern(list->methods[i].name), list->methods[i].function);
      }
    }
  }
  size_t size = 8;
  while (size < 2 * methods.size()) size *= 2;
  // Kept for ever, as a sender may be looking at it; tables are few, and are replaced only when a category comes.
  auto* table = new Table{size - 1, new Table::Entry[size]()};
  for (const auto& [name, function] : methods) {
    size_t i = Table::hash(name) & table->mask;
    while (table->entries[i].name) i = (i + 1) & table->mask;
    table->entries[i] = {name, function};
  }
  return table;
}

void initialize(Class* cls) {
  if (cls->info & kInitialized) return;
  cls->info |= kInitialized;
  if (cls->superclass) initialize(cls->superclass);
  const char* name = intern("initialize");
  if (const mpsforge_imp function = cls->isa->table.load()->find(name)) {
    Selector selector{{name}, nullptr};
    reinterpret_cast<void (*)(Class*, Selector*)>(function)(cls, &selector);
  }
}

// Of the class and of all above it. Other threads wait for the lock until +initialize has ended; this thread finds
// tables.
const Table* table_of(Class* cls) {
  if (const Table* table = cls->table.load(std::memory_order_acquire)) return table;
  RuntimeLock lock;
  if (const Table* table = cls->table.load(std::memory_order_relaxed)) return table;
  if (cls->info & kFreed) return nullptr;
  resolve(cls);
  Class* plain = cls->info & kMetaclass ? find_class(cls->name) : cls;
  const bool first = !(plain->info & kInitialized);
  for (Class* each = plain; each; each = each->superclass) {
    for (Class* of : {each, each->isa}) {
      if (!of->table.load(std::memory_order_relaxed)) of->table.store(make_table(of), std::memory_order_release);
    }
  }
  if (first) initialize(plain);
  return cls->table.load(std::memory_order_relaxed);
}

// What a message to nil answers: zero in both registers of a result.
struct Zero {
  long first;
  long second;
};
Zero answer_of_nil() { return {0, 0}; }

mpsforge_imp find_or_abort(Class* cls, const Object* receiver, Selector* selector) {
  if (const mpsforge_imp found = find_method(cls, selector->name.load(std::memory_order_relaxed))) return found;
  // The module of the caller may not have been taken in yet, and its names with it.
  const char* name = intern(selector->name.load(std::memory_order_relaxed));
  selector->name.store(name, std::memory_order_relaxed);
  if (const mpsforge_imp found = find_method(cls, name)) return found;
  unrecognized_selector(receiver, name);
}

}  // namespace

mpsforge_imp find_method(Class* cls, const char* interned_name) {
  const Table* table = table_of(cls);
  return table ? table->find(interned_name) : nullptr;
}

const char* method_types(Class* cls, const char* name) {
  RuntimeLock lock;
  resolve(cls);
  for (const Class* each = cls; each; each = each->superclass) {
    for (const MethodList* list = each->methods; list; list = list->next) {
      for (int i = 0; i < list->count; ++i) {
        if (std::strcmp(list->methods[i].name, name) == 0) return list->methods[i].types;
      }
    }
  }
  return nullptr;
}

void unrecognized_selector(const Object* receiver, const char* selector) {
  const Class* cls = receiver->isa;
  if (cls->info & kFreed) {
    std::fprintf(stderr, "*** -[%s %s]: message sent to deallocated instance %p\n", cls->name, selector,
                 static_cast<const void*>(receiver));
  } else {
    std::fprintf(stderr, "%c[%s %s]: unrecognized selector sent to %s %p\n", cls->info & kMetaclass ? '+' : '-',
                 cls->name, selector, cls->info & kMetaclass ? "class" : "instance",
                 static_cast<const void*>(receiver));
    tell_version(cls, selector);
  }
  std::abort();
}

}  // namespace mpsforge::objc

using mpsforge::objc::Object;
using mpsforge::objc::Selector;

extern "C" {

mpsforge_imp objc_msg_lookup(Object* receiver, Selector* selector) {
  if (!receiver) return reinterpret_cast<mpsforge_imp>(mpsforge::objc::answer_of_nil);
  const mpsforge::objc::Table* table = receiver->isa->table.load(std::memory_order_acquire);
  if (table) {
    if (const mpsforge_imp found = table->find(selector->name.load(std::memory_order_relaxed))) return found;
  }
  return mpsforge::objc::find_or_abort(receiver->isa, receiver, selector);
}

// Of methods that return a structure in memory. The compiler does not call them on nil.
mpsforge_imp objc_msg_lookup_stret(Object* receiver, Selector* selector) { return objc_msg_lookup(receiver, selector); }

mpsforge_imp objc_msg_lookup_super(mpsforge::objc::Super* super, Selector* selector) {
  if (!super->self) return reinterpret_cast<mpsforge_imp>(mpsforge::objc::answer_of_nil);
  return mpsforge::objc::find_or_abort(super->superclass, super->self, selector);
}

mpsforge_imp objc_msg_lookup_super_stret(mpsforge::objc::Super* super, Selector* selector) {
  return objc_msg_lookup_super(super, selector);
}

}  // extern "C"
