// The SDK that the headers are for, and availability marks, which the compiler does not know for Linux.
//
// Which macOS the process finds is said when it runs (MPSFORGE_METAL_MACOS), so __builtin_available asks for it. A
// statement @available(...) cannot be turned by a header, and clang for Linux makes it true whatever it says: host
// builds refuse sources that hold one (fork/hostbuild/host/availability.go).
#pragma once

#define __MAC_13_0 130000
#define __MAC_13_1 130100
#define __MAC_13_2 130200
#define __MAC_13_3 130300
#define __MAC_14_0 140000
#define __MAC_14_4 140400
#define __MAC_15_0 150000
#define __MAC_15_1 150100
#define __MAC_15_2 150200
#define __MAC_15_4 150400
#define __MAC_26_0 260000
#define MAC_OS_VERSION_13_0 130000
#define MAC_OS_VERSION_14_0 140000
#define MAC_OS_VERSION_15_0 150000

// An SDK of macOS 15: every class and selector of it is declared.
#ifndef __MAC_OS_X_VERSION_MAX_ALLOWED
#define __MAC_OS_X_VERSION_MAX_ALLOWED __MAC_15_2
#endif
#ifndef __MAC_OS_X_VERSION_MIN_REQUIRED
#define __MAC_OS_X_VERSION_MIN_REQUIRED __MAC_13_0
#endif
#define MAC_OS_X_VERSION_MAX_ALLOWED __MAC_OS_X_VERSION_MAX_ALLOWED
#define MAC_OS_X_VERSION_MIN_REQUIRED __MAC_OS_X_VERSION_MIN_REQUIRED

#define API_AVAILABLE(...)
#define API_UNAVAILABLE(...)
#define API_DEPRECATED(...)
#define API_DEPRECATED_WITH_REPLACEMENT(...)
#define NS_AVAILABLE(...)
#define NS_AVAILABLE_MAC(...)
#define NS_DEPRECATED(...)
#define NS_CLASS_AVAILABLE(...)
#define NS_ENUM_AVAILABLE(...)
#define __API_AVAILABLE(...)
#define __OSX_AVAILABLE_STARTING(...)

#ifdef __cplusplus
extern "C" {
#endif
// 1 if the clause of macOS in the text ("macOS 14.4, *") is fulfilled; aborts if there is none.
int mpsforge_available(const char* clauses);
#ifdef __cplusplus
}
#endif
#define __builtin_available(...) (mpsforge_available(#__VA_ARGS__) != 0)
