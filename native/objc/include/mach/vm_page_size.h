#pragma once

#include <mach/vm_types.h>

#ifdef __cplusplus
extern "C" {
#endif

// 16 KiB, as on Apple silicon, whatever the page size here is.
extern vm_size_t vm_page_size;
extern vm_size_t vm_page_mask;
extern int vm_page_shift;

#ifdef __cplusplus
}
#endif

#ifndef PAGE_SIZE
#define PAGE_SIZE vm_page_size
#endif
#define round_page(x) (((vm_offset_t)(x) + vm_page_mask) & ~vm_page_mask)
#define trunc_page(x) ((vm_offset_t)(x) & ~vm_page_mask)
