// What the macOS that the process finds (MPSFORGE_METAL_MACOS) does not have yet: as on a Mac, nothing answers to it.
#include <cstdio>
#include <string>
#include <unordered_map>

#include "../engine.h"
#include "runtime.h"

namespace mpsforge::objc {
namespace {

struct Since {
  const char* type;      // class or protocol
  const char* selector;  // with + or -; empty: the class itself
  unsigned version;      // 100 * major + minor
};

// Of native/apple/api.tsv; a test of native/apple writes it, and holds it to the table.
constexpr Since kSince[] = {
#include "api_versions.inc"
};

using Versions = std::unordered_map<std::string, unsigned>;

// By type, then by selector. Used with the runtime's lock alone. Never destroyed, as classes are not.
const Versions* versions_of(const char* type) {
  static const auto* const made = [] {
    auto* all = new std::unordered_map<std::string, Versions>;
    for (const Since& each : kSince) (*all)[each.type].emplace(each.selector, each.version);
    return all;
  }();
  const auto found = made->find(type);
  return found == made->end() ? nullptr : &found->second;
}

unsigned newer(const char* type, const std::string& selector) {
  const Versions* versions = versions_of(type);
  if (!versions) return 0;
  const auto found = versions->find(selector);
  return found != versions->end() && found->second > environment().config.macos ? found->second : 0;
}

unsigned newer_in(const ProtocolList* list, const std::string& selector) {
  for (; list; list = list->next) {
    for (long i = 0; i < list->count; ++i) {
      const Protocol* protocol = list->protocols[i];
      if (const unsigned found = newer(protocol->name, selector)) return found;
      if (const unsigned found = newer_in(protocol->protocols, selector)) return found;
    }
  }
  return 0;
}

}  // namespace

unsigned newer_class(const Class* cls) {
  RuntimeLock lock;
  return newer(cls->name, "");
}

unsigned newer_method(const Class* cls, const char* name) {
  RuntimeLock lock;
  const bool of_class = cls->info & kMetaclass;
  const std::string selector = (of_class ? "+" : "-") + std::string(name);
  for (const Class* each = cls; each; each = each->superclass) {
    // The chain of metaclasses ends in the root class, whose instance methods classes have, too.
    if (of_class && !(each->info & kMetaclass)) break;
    if (const unsigned found = newer_class(each)) return found;
    if (const unsigned found = newer(each->name, selector)) return found;
    // A metaclass has its class's protocols.
    const Class* plain = of_class ? find_class(each->name) : each;
    if (const unsigned found = newer_in(plain ? plain->protocols : nullptr, selector)) return found;
  }
  return 0;
}

void tell_version(const Class* cls, const char* name) {
  const unsigned since = newer_method(cls, name);
  if (since == 0) return;
  const unsigned macos = environment().config.macos;
  std::fprintf(stderr, "mpsforge: Apple's API has it since macOS %u.%u, and MPSFORGE_METAL_MACOS is %u.%u\n",
               since / 100, since % 100, macos / 100, macos % 100);
}

}  // namespace mpsforge::objc
