#ifndef MPSFORGE_MACH_MACH_H
#define MPSFORGE_MACH_MACH_H

#include <mach/mach_time.h>
#include <mach/vm_page_size.h>
#include <mach/vm_types.h>

#endif
