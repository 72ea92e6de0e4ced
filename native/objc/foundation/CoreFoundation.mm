// Core Foundation's numbers and strings, which are Foundation's here, and the little of IOKit that goes with them.
#import <IOKit/IOKitLib.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>

#include "../engine.h"
#include "support.h"

namespace {

constexpr int kGpuCores = 10;

id object(const void* reference) { return static_cast<id>(const_cast<void*>(reference)); }

// Names of the registry's objects. An entry is always the accelerator.
struct Registry {
  std::mutex mutex;
  io_object_t next = 1;
  std::map<io_object_t, int> left;  // in an iterator; 0 of an entry

  io_object_t add(int entries) {
    std::lock_guard<std::mutex> lock(mutex);
    left[next] = entries;
    return next++;
  }
};

Registry& registry() {
  static auto& made = *new Registry;
  return made;
}

}  // namespace

extern "C" {

// Kept for ever, one a text.
CFStringRef mpsforge_cf_string(const char* text) {
  static std::mutex mutex;
  static auto& made = *new std::map<std::string, NSString*>;
  std::lock_guard<std::mutex> lock(mutex);
  NSString*& string = made[text];
  if (!string) string = [[NSString alloc] initWithUTF8String:text];
  return static_cast<CFStringRef>(static_cast<const void*>(string));
}

Boolean CFNumberGetValue(CFNumberRef reference, CFNumberType type, void* value) {
  auto* number = static_cast<NSNumber*>(object(reference));
  switch (type) {
    case kCFNumberIntType:
      *static_cast<int*>(value) = [number intValue];
      return [@([number intValue]) isEqual:number];
    case kCFNumberLongType:
    case kCFNumberLongLongType:
      *static_cast<long long*>(value) = [number longLongValue];
      return [@([number longLongValue]) isEqual:number];
    case kCFNumberDoubleType:
      *static_cast<double*>(value) = [number doubleValue];
      return true;
    default:
      mpsforge::objc::fail("CFNumberGetValue with type %ld is not implemented", type);
  }
}

CFMutableDictionaryRef IOServiceMatching(const char* name) {
  auto* matching = [[NSMutableDictionary alloc] init];
  [matching setObject:[NSString stringWithUTF8String:name] forKey:@"IOProviderClass"];
  return static_cast<CFMutableDictionaryRef>(static_cast<void*>(matching));
}

kern_return_t IOServiceGetMatchingServices(mach_port_t, CFDictionaryRef matching, io_iterator_t* iterator) {
  auto* wanted = static_cast<NSDictionary*>(object(matching));
  *iterator = registry().add([[wanted objectForKey:@"IOProviderClass"] isEqual:@"AGXAccelerator"] ? 1 : 0);
  [wanted release];
  return KERN_SUCCESS;
}

io_object_t IOIteratorNext(io_iterator_t iterator) {
  {
    Registry& known = registry();
    std::lock_guard<std::mutex> lock(known.mutex);
    const auto found = known.left.find(iterator);
    if (found == known.left.end()) mpsforge::objc::fail("IOIteratorNext: %u is no iterator", iterator);
    if (found->second == 0) return 0;
    --found->second;
  }
  return registry().add(0);
}

CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t, CFStringRef key, CFAllocatorRef, IOOptionBits) {
  auto* name = static_cast<NSString*>(object(key));
  if (![name isEqual:@"gpu-core-count"]) {
    mpsforge::objc::fail("IORegistryEntryCreateCFProperty: the property %s is not implemented", [name UTF8String]);
  }
  return [[NSNumber alloc] initWithInt:kGpuCores];
}

kern_return_t IOObjectRelease(io_object_t released) {
  Registry& known = registry();
  std::lock_guard<std::mutex> lock(known.mutex);
  if (known.left.erase(released) == 0) mpsforge::objc::fail("IOObjectRelease: %u is no object", released);
  return KERN_SUCCESS;
}

}  // extern "C"
