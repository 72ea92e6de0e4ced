#pragma once

#include <mach/mach_time.h>
#include <mach/vm_page_size.h>
#include <mach/vm_types.h>
