// What compiled accessors of properties call.
#include <cstring>

#include "../runtime/runtime.h"
#include "support.h"

namespace {

id* slot(id object, ptrdiff_t offset) { return reinterpret_cast<id*>(reinterpret_cast<char*>(object) + offset); }

mpsforge::objc::Object** raw(id* at) { return reinterpret_cast<mpsforge::objc::Object**>(at); }

id cooked(mpsforge::objc::Object* object) { return static_cast<id>(static_cast<void*>(object)); }

}  // namespace

extern "C" {

id objc_getProperty(id self, SEL, ptrdiff_t offset, BOOL atomic) {
  id* at = slot(self, offset);
  return atomic ? [cooked(mpsforge::objc::atomic_get(raw(at))) autorelease] : *at;
}

void objc_setProperty(id self, SEL, ptrdiff_t offset, id value, BOOL atomic, BOOL copy) {
  id* at = slot(self, offset);
  value = copy ? [value copy] : [value retain];
  id old = nil;
  if (atomic) {
    old = cooked(mpsforge::objc::atomic_exchange(raw(at), *raw(&value)));
  } else {
    old = *at;
    *at = value;
  }
  [old release];
}

void objc_getPropertyStruct(void* to, const void* from, ptrdiff_t size, BOOL atomic, BOOL) {
  if (!atomic) {
    std::memcpy(to, from, static_cast<size_t>(size));
    return;
  }
  mpsforge::objc::atomic_copy(to, from, static_cast<size_t>(size), from);
}

void objc_setPropertyStruct(void* to, const void* from, ptrdiff_t size, BOOL atomic, BOOL) {
  if (!atomic) {
    std::memcpy(to, from, static_cast<size_t>(size));
    return;
  }
  mpsforge::objc::atomic_copy(to, from, static_cast<size_t>(size), to);
}

void objc_enumerationMutation(id collection) {
  [NSException
       raise:NSGenericException
      format:@"collection <%s: %p> was changed while it was enumerated", object_getClassName(collection), collection];
}

}  // extern "C"
