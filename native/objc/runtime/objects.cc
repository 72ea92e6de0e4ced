// The memory of objects.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime.h"

namespace mpsforge::objc {
namespace {

bool zombies() {
  static const bool on = [] {
    const char* value = std::getenv("MPSFORGE_OBJC_ZOMBIES");
    return value && std::strcmp(value, "1") == 0;
  }();
  return on;
}

mpsforge_imp own_method(const Class* cls, const char* name) {
  for (const MethodList* list = cls->methods; list; list = list->next) {
    for (int i = 0; i < list->count; ++i) {
      if (std::strcmp(list->methods[i].name, name) == 0) return list->methods[i].function;
    }
  }
  return nullptr;
}

// The compiler makes such a method for a class with C++ variables; each sees to those of its own class.
void call_own(const Class* cls, const char* name, Object* object) {
  if (const mpsforge_imp function = own_method(cls, name)) {
    Selector selector{{name}, nullptr};
    reinterpret_cast<void (*)(Object*, Selector*)>(function)(object, &selector);
  }
}

void construct(const Class* cls, Object* object) {
  if (cls->superclass) construct(cls->superclass, object);
  call_own(cls, ".cxx_construct", object);
}

// A class without any method in whose name freed objects abort.
Class* freed_twin(Class* cls) {
  if (Class* made = cls->freed_twin.load(std::memory_order_acquire)) return made;
  RuntimeLock lock;
  if (!cls->freed_twin.load()) {
    auto* twin = new Class{};
    twin->name = cls->name;
    twin->info = kClass | kFreed;
    cls->freed_twin.store(twin, std::memory_order_release);
  }
  return cls->freed_twin.load();
}

}  // namespace

Object* allocate(Class* cls, size_t extra_bytes) {
  resolve(cls);
  void* memory = std::calloc(1, sizeof(Header) + static_cast<size_t>(cls->instance_size) + extra_bytes);
  if (!memory) {
    std::fprintf(stderr, "mpsforge: no memory for an instance of %s\n", cls->name);
    std::abort();
  }
  auto* object = reinterpret_cast<Object*>(new (memory) Header + 1);
  object->isa = cls;
  if (cls->info.load(std::memory_order_relaxed) & kConstructs) construct(cls, object);
  return object;
}

Object* copy_plain(const Object* object) {
  Object* made = allocate(object->isa, 0);
  std::memcpy(static_cast<void*>(made + 1), object + 1, static_cast<size_t>(object->isa->instance_size) - sizeof *made);
  return made;
}

void destroy(Object* object) {
  Class* cls = object->isa;
  const bool destroys = cls->info.load(std::memory_order_relaxed) & kConstructs;
  for (const Class* each = cls; destroys && each; each = each->superclass) call_own(each, ".cxx_destruct", object);
  // malloc's own notes about free memory lie within the header, so the class outlives it.
  __atomic_store_n(&object->isa, freed_twin(cls), __ATOMIC_RELAXED);
  if (!zombies()) std::free(header(object));
}

}  // namespace mpsforge::objc
