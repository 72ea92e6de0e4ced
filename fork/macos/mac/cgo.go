package mac

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/events"
	"mpsforge/native/apple"
)

// zigs are zig's wheels for the machines that programs for macOS are made on. Its compiler is the one here, as it brings compiler-rt and
// a libc++ to link in.
var zigs = map[string]wheels.Wheel{
	"linux/amd64": {
		URL:    "https://files.pythonhosted.org/packages/9d/ef/494f128ea7ec3345850bbd75d2cb7b987006fb5601c37543e8fa83e5e3d4/ziglang-0.14.1-py3-none-manylinux_2_12_x86_64.manylinux2010_x86_64.musllinux_1_1_x86_64.whl",
		SHA256: "6eb9d4d759b292c83810dbee2e9e8e3fbfbf01d864e6e9811bae711fd74e1c2f",
	},
	"linux/arm64": {
		URL:    "https://files.pythonhosted.org/packages/94/84/2ca431d4f7984a260b5115a5ab130c1459d0b0ed08c5ae7d4093e52cb4a3/ziglang-0.14.1-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
		SHA256: "7994b27f3cbfcedea43f9b7552e38b45857bdf0e9a45065474092dd74e7048cf",
	},
}

// zigCompilerParts are those of zig that compile and link for macOS.
var zigCompilerParts = []string{"ziglang/zig", "ziglang/lib/"}

// zigArchitectures are zig's names of Go's.
var zigArchitectures = map[string]string{"arm64": "aarch64"}

// cgoNames are what a Go program with mpsforge's Apple backend takes from libraries of the system beside the classes of Apple's table and
// beside libSystem, whose list is Apple's own.
var cgoNames = map[string][]string{
	// What clang calls for Objective-C (clang.llvm.org/docs/AutomaticReferenceCounting.html#runtime-support).
	"/usr/lib/libobjc.A.dylib": {"_OBJC_CLASS_$_NSObject", "_OBJC_METACLASS_$_NSObject", "__objc_empty_cache", "_objc_alloc", "_objc_alloc_init",
		"_objc_enumerationMutation", "_objc_getProperty", "_objc_setProperty_atomic", "_objc_sync_enter", "_objc_sync_exit", "_objc_autoreleasePoolPop",
		"_objc_autoreleasePoolPush",
		"_objc_autoreleaseReturnValue", "_objc_msgSend", "_objc_msgSendSuper2", "_objc_release", "_objc_retain", "_objc_retainAutoreleaseReturnValue",
		"_objc_retainAutoreleasedReturnValue", "_objc_retainBlock",
		"_objc_storeStrong"},
	"/System/Library/Frameworks/Metal.framework/Versions/A/Metal": {"_MTLCreateSystemDefaultDevice"},
	// Nothing of it is used: Metal needs it to find a device (framework_darwin.m).
	"/System/Library/Frameworks/CoreGraphics.framework/Versions/A/CoreGraphics": {"_CGMainDisplayID"},
	"/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation":     {"_OBJC_CLASS_$_NSCondition"},
	// Go's own, in crypto/x509/internal/macos and internal/syscall/unix.
	"/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation": {"___CFConstantStringClassReference", "_CFArrayAppendValue",
		"_CFArrayCreateMutable", "_CFArrayGetCount", "_CFArrayGetValueAtIndex",
		"_CFDataCreate", "_CFDataGetBytePtr", "_CFDataGetLength", "_CFDateCreate", "_CFDictionaryGetValueIfPresent", "_CFEqual",
		"_CFErrorCopyDescription", "_CFErrorGetCode", "_CFNumberGetValue", "_CFRelease",
		"_CFStringCreateExternalRepresentation", "_CFStringCreateWithBytes", "_OBJC_CLASS_$_NSArray", "_OBJC_CLASS_$_NSDictionary"},
	"/System/Library/Frameworks/Security.framework/Versions/A/Security": {"_SecCertificateCopyData", "_SecCertificateCreateWithData",
		"_SecPolicyCreateSSL", "_SecTrustCopyCertificateChain",
		"_SecTrustCreateWithCertificates", "_SecTrustEvaluate", "_SecTrustEvaluateWithError", "_SecTrustSetVerifyDate"},
	"/usr/lib/libresolv.9.dylib": {"_res_9_nclose", "_res_9_ninit", "_res_9_nsearch"},
}

// Compilers gives a folder with a C and a C++ compiler for macOS of one of Go's architectures, such as cc-arm64 and c++-arm64, for Go's CC and CXX.
// The caller holds the lock of the cache's Folder.
func Compilers(ctx context.Context, cache, arch string, sink events.Sink) (dir string, err error) {
	if cache, err = filepath.Abs(cache); err != nil {
		return "", err
	}
	wheel, known := zigs[runtime.GOOS+"/"+runtime.GOARCH]
	if !known || zigArchitectures[arch] == "" {
		return "", fmt.Errorf("%w: no compiler is known that makes darwin/%s on %s/%s", builds.ErrEnvironment, arch, runtime.GOOS, runtime.GOARCH)
	}
	zig, err := wheel.Get(ctx, cache, zigCompilerParts, sink)
	if err != nil {
		return "", err
	}
	zig = filepath.Join(zig, "ziglang/zig")
	if err := os.Chmod(zig, 0o755); err != nil {
		return "", err
	}
	first, ours, err := layOwnHeaders(Folder(cache))
	if err != nil {
		return "", err
	}
	dir = filepath.Join(Folder(cache), "cgo")
	if err := writeFrameworks(dir); err != nil {
		return "", err
	}
	for _, mode := range []string{"cc", "c++"} {
		file := filepath.Join(dir, mode+"-"+arch)
		// Where Go asks what the compiler can do, without a source, zig leaves a file "-.o": not in the user's folder.
		text := fmt.Sprintf("#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR='%[1]s/zig' ZIG_LOCAL_CACHE_DIR='%[1]s/zig'\n"+
			"case \" $* \" in *' - '*) cd '%[1]s' ;; esac\n"+
			"exec '%[2]s' %[3]s -target %[4]s-macos.%[5]s -isystem '%[6]s' -idirafter '%[7]s' -F'%[1]s' -L'%[1]s' \"$@\"\n", dir, zig, mode,
			zigArchitectures[arch], oldestMacOS, first, ours)
		if err := builds.WriteChanged(file, []byte(text)); err != nil {
			return "", err
		}
		if err := os.Chmod(file, 0o755); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// writeFrameworks writes stubs where compilers look for frameworks and libraries.
func writeFrameworks(dir string) error {
	table, err := apple.Load()
	if err != nil {
		return err
	}
	symbols := stubSymbols{}
	symbols.addAll(cgoNames)
	symbols.addClasses(table)
	for _, library := range slices.Sorted(maps.Keys(symbols)) {
		name, _, _ := strings.Cut(path.Base(library), ".")
		file := filepath.Join(dir, name+".framework", name+".tbd")
		if strings.HasSuffix(library, ".dylib") {
			file = filepath.Join(dir, name+".tbd")
		}
		if err := builds.WriteChanged(file, symbols.stub(library)); err != nil {
			return err
		}
	}
	return nil
}
