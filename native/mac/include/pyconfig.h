// What Python's headers ask of the platform, on macOS: Debian's pyconfig.h knows Linux alone.
#pragma once

#define SIZEOF_INT 4
#define SIZEOF_LONG 8
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_SHORT 2
#define SIZEOF_WCHAR_T 4
#define SIZEOF_TIME_T 8
#define SIZEOF_PTHREAD_T 8
#define SIZEOF_PTHREAD_KEY_T 8
#define ALIGNOF_MAX_ALIGN_T 8
#define HAVE_PTHREAD_H 1
#define HAVE_STDARG_PROTOTYPES 1
#define HAVE_WCHAR_H 1
#define HAVE_SSIZE_T 1
#define HAVE_UINTPTR_T 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_UNISTD_H 1
#define HAVE_STD_ATOMIC 1
#define HAVE_BUILTIN_ATOMIC 1
#define PY_FORMAT_SIZE_T "z"
#define WITH_DOC_STRINGS 1
