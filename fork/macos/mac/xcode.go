package mac

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

// Xcode is what sources are compiled and linked with: Apple's command line tools on a Mac, and on Linux programs and a folder of libraries
// that take their place (layXcode).
type Xcode struct {
	SDK    string   // folder
	Clang  string   // program
	Linker string   // program that takes ld64's command line
	Major  int      // of clang's version, as Apple counts it
	System []string // libraries that the linker gets beside the SDK's: the compiler's own
}

// ErrXcode is returned, wrapped, where Apple's command line tools are not there or do not answer.
var ErrXcode = fmt.Errorf("%w: Apple's command line tools", builds.ErrEnvironment)

// FindXcode asks xcrun, which comes with macOS and knows which of the installed tools and SDKs is the chosen one.
func FindXcode(ctx context.Context) (x Xcode, err error) {
	ask := func(args ...string) (string, error) {
		found, err := run.Command{Name: "xcrun", Args: append([]string{"--sdk", "macosx"}, args...), Dir: "/"}.Run(ctx)
		answer := strings.TrimSpace(string(found.Stdout))
		if err == nil && !filepath.IsAbs(answer) {
			err = fmt.Errorf("xcrun %s answered %q, which is no path", strings.Join(args, " "), answer)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			err = fmt.Errorf("%w: %w; install them with: xcode-select --install", ErrXcode, err)
		}
		return answer, err
	}
	for _, one := range []struct {
		answer *string
		args   []string
	}{{&x.SDK, []string{"--show-sdk-path"}}, {&x.Clang, []string{"--find", "clang"}}, {&x.Linker, []string{"--find", "ld"}}} {
		if *one.answer, err = ask(one.args...); err != nil {
			return x, err
		}
	}
	clang := func(question string) (string, error) {
		found, err := run.Command{Name: x.Clang, Args: []string{question}, Dir: "/"}.Run(ctx)
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrXcode, err)
		}
		return strings.TrimSpace(string(found.Stdout)), err
	}
	version, err := clang("-dumpversion")
	if err != nil {
		return x, err
	}
	major, _, _ := strings.Cut(version, ".")
	if x.Major, err = strconv.Atoi(major); err != nil {
		return x, fmt.Errorf("%w: %s -dumpversion answered %q", ErrXcode, x.Clang, version)
	}
	resources, err := clang("-print-resource-dir")
	if err != nil {
		return x, err
	}
	x.System = []string{filepath.Join(resources, "lib/darwin", compilerLibrary+".a")}
	if !builds.Exists(x.System[0]) {
		return x, fmt.Errorf("%w: no %s, the compiler's own library; install them again with: xcode-select --install", ErrXcode, x.System[0])
	}
	return x, nil
}

// compilerLibrary is the compiler's own library, which is linked into each: what @available and __builtin_available call.
const compilerLibrary = "libclang_rt.osx"

// layXcode makes what FindXcode finds on a Mac: a clang that is the root's, with zig's headers of macOS and native/objc's where Apple's has
// the SDK's, and a linker that is the root's. The libraries of the SDK come later, as they are read off PyTorch's wheel (layLibraries).
func (k *Kit) layXcode(ctx context.Context, root *host.Root, sink events.Sink) (x Xcode, err error) {
	zig, err := ziglang.Get(ctx, k.cache, zigParts, sink)
	if err != nil {
		return x, err
	}
	first, ours, err := layOwnHeaders(Folder(k.cache))
	if err != nil {
		return x, err
	}
	dir := filepath.Join(Folder(k.cache), "xcode")
	resources := filepath.Join(dir, "clang")
	x = Xcode{SDK: filepath.Join(dir, "MacOSX.sdk"), Clang: filepath.Join(dir, "bin/clang"), Linker: filepath.Join(dir, "bin/ld"), Major: host.ClangMajor,
		System: []string{filepath.Join(resources, "lib/darwin", compilerLibrary+".a")}}
	flags := slices.Concat([]string{"-resource-dir", resources, "-nostdinc", "-nostdinc++"}, libcxxSettings)
	for _, folder := range []string{first, filepath.Join(zig, "ziglang/lib/libcxx/include"), filepath.Join(zig, "ziglang/lib/libcxxabi/include"),
		root.Resources(), filepath.Join(zig, "ziglang/lib/libc/include/any-macos-any"), ours} {
		flags = append(flags, "-isystem", folder)
	}
	others, err := k.layOthers(root)
	if err != nil {
		return x, err
	}
	for _, folder := range others {
		flags = append(flags, "-idirafter", folder)
	}
	return x, errors.Join(link(root.Resources(), filepath.Join(resources, "include")),
		link(filepath.Join(zig, "ziglang/lib/libc/darwin/libSystem.tbd"), x.stub(libSystemName)),
		host.WriteScripts(filepath.Dir(x.Clang), map[string]string{
			filepath.Base(x.Clang):  "exec '" + strings.Join(append([]string{root.Tool("clang")}, flags...), "' '") + "'",
			filepath.Base(x.Linker): "exec '" + root.Tool("ld64") + "' '--error-limit=0'"}))
}

// libcxxSettings are what zig gives on the command line, and others in libc++'s <__config_site>.
var libcxxSettings = []string{"-D_LIBCPP_ABI_VERSION=1", "-D_LIBCPP_ABI_NAMESPACE=__1", "-D_LIBCPP_HAS_NO_TIME_ZONE_DATABASE",
	"-D_LIBCPP_PSTL_BACKEND_SERIAL", "-D_LIBCPP_HARDENING_MODE_DEFAULT=_LIBCPP_HARDENING_MODE_NONE"}

// stub is the file that has the names of a library of the system, for the linker.
func (x Xcode) stub(library string) string {
	return filepath.Join(x.SDK, strings.TrimSuffix(library, ".dylib")+".tbd")
}

// plan gives commands to Kit.Plan with the tools themselves in the place of the scripts that start them.
func (k *Kit) plan() func(command run.Command) {
	if k.Plan == nil {
		return nil
	}
	tools := map[string]string{k.Root.Tool("clang"): k.Xcode.Clang, k.Root.Tool("ld64"): k.Xcode.Linker}
	return func(command run.Command) {
		command.Name = tools[command.Name]
		k.Plan(command)
	}
}

// CheckFmt refuses a checkout without fmt's headers where neither PyTorch's wheel nor the tools have them.
func (k *Kit) CheckFmt(ctx context.Context, checkout string) error {
	found := run.Command{Name: k.Root.Tool("clang"), Args: append(k.flags("objective-c++"), "-E", "-o", "/dev/null", "-"), Dir: checkout,
		Stdin: strings.NewReader("#if !__has_include(<fmt/format.h>)\n#error none\n#endif\n")}
	_, err := found.Run(ctx)
	if failed := (*run.Error)(nil); errors.As(err, &failed) && strings.Contains(failed.Stderr, "#error none") {
		return fmt.Errorf("%w: %s has no third_party/fmt, whose headers PyTorch's include: git -C %[2]s submodule update --init third_party/fmt",
			builds.ErrEnvironment, checkout)
	}
	return err
}
