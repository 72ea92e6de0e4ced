// The registry of devices, as far as the number of the GPU's cores is asked of it: one AGXAccelerator.
#pragma once

#include <CoreFoundation/CoreFoundation.h>
#include <mach/vm_types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef mach_port_t io_object_t;
typedef io_object_t io_iterator_t;
typedef io_object_t io_registry_entry_t;
typedef io_object_t io_service_t;
typedef uint32_t IOOptionBits;
#define kIOMainPortDefault ((mach_port_t)0)

CFMutableDictionaryRef IOServiceMatching(const char* name);
// Consumes the dictionary.
kern_return_t IOServiceGetMatchingServices(mach_port_t port, CFDictionaryRef matching, io_iterator_t* iterator);
io_object_t IOIteratorNext(io_iterator_t iterator);  // 0 at the end
// "gpu-core-count" only; aborts for other keys.
CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t entry, CFStringRef key, CFAllocatorRef allocator,
                                          IOOptionBits options);
kern_return_t IOObjectRelease(io_object_t object);

#ifdef __cplusplus
}
#endif
