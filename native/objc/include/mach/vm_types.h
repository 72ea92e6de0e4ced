#pragma once

#include <stdint.h>

typedef uintptr_t vm_offset_t;
typedef uintptr_t vm_address_t;
typedef uintptr_t vm_size_t;
typedef uint64_t mach_vm_address_t;
typedef uint64_t mach_vm_size_t;
typedef unsigned int mach_port_t;
typedef int kern_return_t;
#define KERN_SUCCESS 0
