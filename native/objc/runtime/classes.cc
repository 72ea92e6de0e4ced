// Classes and categories: taken in as modules are loaded, put in order at their first use.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime.h"

namespace mpsforge::objc {
namespace {

struct Known {
  std::unordered_map<std::string, Class*> classes;
  std::unordered_map<std::string, std::vector<Category*>> waiting;  // categories whose class is not loaded
};

// Never destroyed: static destructors of the program ask for classes.
Known& known() {
  static auto& made = *new Known;
  return made;
}

// What a variable of a type must be aligned to. Only the first letter counts; a structure is given the most that its
// members commonly need.
int alignment(const char* type) {
  while (*type && std::strchr("rnNoORVA", *type)) ++type;
  switch (*type) {
    case 'c':
    case 'C':
    case 'B':
      return 1;
    case 's':
    case 'S':
      return 2;
    case 'i':
    case 'I':
    case 'f':
    case 'b':
      return 4;
    default:
      return 8;
  }
}

bool aligned(const Class& cls, long base, bool structures) {
  for (int i = 0; cls.ivars && i < cls.ivars->count; ++i) {
    const Ivar& ivar = cls.ivars->ivars[i];
    if (!structures && std::strchr("{[(", *ivar.type)) continue;
    if ((base + ivar.offset) % alignment(ivar.type) != 0) return false;
  }
  return true;
}

// Where the class's own variables begin. The compiler knew the superclass by its public variables only; the true one
// may be longer, and the offsets must stay aligned.
long first_variable(const Class& cls, long size_of_superclass) {
  for (const bool structures : {true, false}) {
    for (long base = size_of_superclass; base < size_of_superclass + 8; ++base) {
      if (aligned(cls, base, structures)) return base;
    }
  }
  std::fprintf(stderr, "mpsforge: no place for the variables of class %s fits their alignment\n", cls.name);
  std::abort();
}

void place_variables(Class* cls) {
  if (cls->instance_size > 0) return;
  const long size_of_superclass = cls->superclass ? cls->superclass->instance_size : 0;
  const long base = first_variable(*cls, size_of_superclass);
  for (int i = 0; cls->ivars && i < cls->ivars->count; ++i) {
    cls->ivars->ivars[i].offset += static_cast<int>(base);
    if (cls->ivar_offsets && cls->ivar_offsets[i]) *cls->ivar_offsets[i] = cls->ivars->ivars[i].offset;
  }
  cls->instance_size = base - cls->instance_size;
}

// The compiler makes a method for those of a class with C++ variables that construct or destroy anything.
bool has_cxx_variables(const Class& cls) {
  for (const MethodList* list = cls.methods; list; list = list->next) {
    for (int i = 0; i < list->count; ++i) {
      if (std::strncmp(list->methods[i].name, ".cxx_", 5) == 0) return true;
    }
  }
  return false;
}

// Tables of the class and of all below it are made again at the next message.
void forget_tables(Class* changed) {
  for (auto& [name, cls] : known().classes) {
    if (!(cls->info & kResolved)) continue;
    for (Class* each : {cls, cls->isa}) {
      for (Class* above = each; above; above = above->superclass) {
        if (above == changed) each->table.store(nullptr, std::memory_order_release);
      }
    }
  }
}

// The chain is made of copies, which are kept for ever: a list is an image's memory, and one that led into another
// image would look like a use of it (native/overlay/rebind_elf.cc).
template <typename List, typename Element>
void chain_copy(List*& chain, const List* list, const Element* elements) {
  if (!list) return;
  const size_t head = reinterpret_cast<const char*>(elements) - reinterpret_cast<const char*>(list);
  const size_t size = std::max(sizeof(List), head + list->count * sizeof(Element));
  auto* copy = static_cast<List*>(::operator new(size));
  std::memcpy(static_cast<void*>(copy), list, head + list->count * sizeof(Element));
  copy->next = chain;
  chain = copy;
}

void add_methods(Class* cls, const MethodList* list) {
  if (!list) return;
  chain_copy(cls->methods, list, list->methods);
  forget_tables(cls);
}

void attach(Class* cls, Category* category) {
  add_methods(cls, category->instance_methods);
  add_methods(cls->isa, category->class_methods);
  if (category->protocols) chain_copy(cls->protocols, category->protocols, category->protocols->protocols);
}

void call_load(Class* cls) {
  const char* load = intern("load");
  for (const MethodList* list = cls->isa->methods; list; list = list->next) {
    for (int i = 0; i < list->count; ++i) {
      if (intern(list->methods[i].name) != load) continue;
      Selector selector{{load}, nullptr};
      reinterpret_cast<void (*)(Class*, Selector*)>(list->methods[i].function)(cls, &selector);
    }
  }
}

void take_in(Module* module) {
  SymbolTable* symbols = module->symbols;
  for (Selector* selector = symbols->selectors; selector && selector->name.load(); ++selector) {
    selector->name.store(intern(selector->name.load()), std::memory_order_relaxed);
  }
  void** definition = symbols->definitions;
  for (int i = 0; i < symbols->class_count; ++i, ++definition) {
    auto* cls = static_cast<Class*>(*definition);
    if (!known().classes.emplace(cls->name, cls).second) {
      std::fprintf(stderr, "mpsforge: two classes are named %s\n", cls->name);
      std::abort();
    }
    for (Category* category : known().waiting[cls->name]) attach(cls, category);
    known().waiting.erase(cls->name);
  }
  for (int i = 0; i < symbols->category_count; ++i, ++definition) {
    auto* category = static_cast<Category*>(*definition);
    // The compiler hangs protocols that no class has on a class that never comes.
    const auto found = known().classes.find(category->class_name);
    if (found == known().classes.end()) {
      known().waiting[category->class_name].push_back(category);
    } else {
      attach(found->second, category);
    }
  }
}

}  // namespace

Class* find_class(const char* name) {
  RuntimeLock lock;
  const auto found = known().classes.find(name);
  if (found == known().classes.end()) return nullptr;
  resolve(found->second);
  return found->second;
}

void resolve(Class* cls) {
  if (cls->info.load(std::memory_order_acquire) & kResolved) return;
  RuntimeLock lock;
  if (cls->info & (kResolved | kFreed)) return;
  if (cls->info & kMetaclass) {
    // A metaclass is put in order with its class.
    if (!find_class(cls->name)) {
      std::fprintf(stderr, "mpsforge: message to class %s, which is not loaded yet\n", cls->name);
      std::abort();
    }
    return;
  }
  Class* metaclass = cls->isa;
  if (const auto* name = reinterpret_cast<const char*>(cls->superclass)) {
    Class* superclass = find_class(name);
    if (!superclass) {
      std::fprintf(stderr, "mpsforge: class %s needs its superclass %s, which is not loaded\n", cls->name, name);
      std::abort();
    }
    cls->superclass = superclass;
    metaclass->superclass = superclass->isa;
    metaclass->isa = superclass->isa->isa;
  } else {
    // Class methods of a root class end in the class itself, whose instance methods classes have too.
    metaclass->superclass = cls;
    metaclass->isa = metaclass;
  }
  place_variables(cls);
  cls->freed_twin = nullptr;
  if (has_cxx_variables(*cls) || (cls->superclass && cls->superclass->info & kConstructs)) cls->info |= kConstructs;
  cls->info |= kResolved;
  metaclass->info |= kResolved;
}

}  // namespace mpsforge::objc

using mpsforge::objc::Class;
using mpsforge::objc::Object;
using mpsforge::objc::Protocol;
using mpsforge::objc::ProtocolList;
using mpsforge::objc::Selector;

namespace {

bool conforms(const ProtocolList* list, const char* name) {
  for (; list; list = list->next) {
    for (long i = 0; i < list->count; ++i) {
      const Protocol* protocol = list->protocols[i];
      if (std::strcmp(protocol->name, name) == 0 || conforms(protocol->protocols, name)) return true;
    }
  }
  return false;
}

}  // namespace

extern "C" {

// Called by a constructor of every module.
void __objc_exec_class(mpsforge::objc::Module* module) {
  mpsforge::objc::RuntimeLock lock;
  mpsforge::objc::take_in(module);
  for (int i = 0; i < module->symbols->class_count; ++i) {
    mpsforge::objc::call_load(static_cast<Class*>(module->symbols->definitions[i]));
  }
}

Class* objc_lookUpClass(const char* name) {
  Class* found = name ? mpsforge::objc::find_class(name) : nullptr;
  return found && !mpsforge::objc::newer_class(found) ? found : nullptr;
}
Class* objc_getClass(const char* name) { return objc_lookUpClass(name); }

Class* object_getClass(Object* object) { return object ? object->isa : nullptr; }
const char* class_getName(const Class* cls) { return cls ? cls->name : "nil"; }
const char* object_getClassName(Object* object) { return class_getName(object_getClass(object)); }
bool class_isMetaClass(const Class* cls) { return cls && (cls->info & mpsforge::objc::kMetaclass); }

Class* class_getSuperclass(Class* cls) {
  if (!cls) return nullptr;
  mpsforge::objc::resolve(cls);
  return cls->superclass;
}

size_t class_getInstanceSize(Class* cls) {
  if (!cls) return 0;
  mpsforge::objc::resolve(cls);
  return static_cast<size_t>(cls->instance_size);
}

bool class_respondsToSelector(Class* cls, const Selector* selector) {
  return cls && selector && mpsforge::objc::find_method(cls, mpsforge::objc::intern(selector->name.load()));
}

bool class_conformsToProtocol(const Class* cls, const Protocol* protocol) {
  return cls && protocol && conforms(cls->protocols, protocol->name);
}

mpsforge_imp class_getMethodImplementation(Class* cls, const Selector* selector) {
  if (!cls || !selector) return nullptr;
  const mpsforge_imp found = mpsforge::objc::find_method(cls, mpsforge::objc::intern(selector->name.load()));
  if (!found) {
    Object instance{cls};
    mpsforge::objc::unrecognized_selector(&instance, selector->name.load());
  }
  return found;
}

const char* protocol_getName(const Protocol* protocol) { return protocol ? protocol->name : "nil"; }

}  // extern "C"
