package host_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/native"
	"mpsforge/native/apple"
)

// headerFiles are the texts of native/objc/include by their names there.
func headerFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	const folder = "objc/include"
	err := builds.EachFile(native.Sources, folder, func(path string, text []byte) error {
		files[strings.TrimPrefix(path, folder+"/")] = string(text)
		return nil
	})
	require.NoError(t, err)
	return files
}

// declared are our headers' declarations; what the system's headers declare, which ours include, is not among them.
func declared(t *testing.T, root *host.Root, files map[string]string) *apple.Headers {
	t.Helper()
	folder := t.TempDir()
	require.Files(t, folder, files)
	var includes strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		includes.WriteString("#include <" + name + ">\n")
	}
	source := filepath.Join(t.TempDir(), "all.mm")
	require.NoError(t, os.WriteFile(source, []byte(includes.String()), 0o644))
	result := require.One(run.Command{Name: root.Tool("clang"), Args: []string{"--driver-mode=g++", "-x", "objective-c++", "-fobjc-runtime=objfw",
		"-fobjc-exceptions", "-fblocks", "-std=c++17", "-Xclang", "-ast-dump", "-fsyntax-only", "-I" + folder, source}}.Run(t.Context()))(t)
	return require.One(apple.ParseHeaders(string(result.Stdout), folder))(t)
}

// What native/objc/include declares is Apple's API, but for what native/apple/own.tsv lists with a reason: a method that Apple does not
// have would let sources compile here and not on a Mac.
func TestHeadersDeclareApplesAPI(t *testing.T) {
	root, _ := hosttest.Root(t)
	table, reasons := tableAndReasons(t)
	files := headerFiles(t)
	headers := declared(t, root, files)
	for _, problem := range apple.Unexplained(apple.Compare(headers, table), reasons) {
		t.Error(problem)
	}
	for _, problem := range apple.WrongMarks(headers, table) {
		t.Error(problem)
	}
	methods := 0
	for _, found := range headers.Types {
		methods += len(found.Methods)
	}
	t.Logf("types: %d, methods: %d, enums: %d, constants: %d, structures: %d, functions: %d", len(headers.Types), methods, len(headers.Enums),
		len(headers.Constants), len(headers.Structs), len(headers.Functions))
	if methods < 900 || len(headers.Constants) < 200 || len(headers.Functions) < 80 {
		t.Error("too little was read for a comparison that says anything")
	}
}

func tableAndReasons(t *testing.T) (*apple.Table, map[string]string) {
	t.Helper()
	table := require.One(apple.Load())(t)
	reasons := require.One(apple.Own())(t)
	return table, reasons
}

// Differences put into the headers, each of which the comparison must name.
var injectedDifferences = []struct{ name, file, old, new, found string }{
	{"a constant's value", "Metal/MTLCommandBuffer.h", "MTLCommandBufferStatusCommitted = 2", "MTLCommandBufferStatusCommitted = 3",
		"MTLCommandBufferStatusCommitted: is 3 here, 2"},
	{"a value by way of another constant", "Metal/MTLResource.h", "#define MTLResourceStorageModeShift 4", "#define MTLResourceStorageModeShift 5",
		"MTLResourceStorageModePrivate: is 64 here, 32"},
	{"a constant that Apple lacks", "Metal/MTLCommandBuffer.h", "MTLCommandBufferStatusCommitted = 2",
		"MTLCommandBufferStatusDone = 9, MTLCommandBufferStatusCommitted = 2", "MTLCommandBufferStatusDone: no such constant"},
	{"a combined value", "MetalPerformanceShaders/MPSCore/MPSCoreTypes.h", "MPSDataTypeAlternateEncodingBit | 8", "MPSDataTypeAlternateEncodingBit | 1",
		"MPSDataTypeBool: is"},
	{"an enum's type", "Metal/MTLCommandBuffer.h", "NS_ENUM(NSUInteger, MTLDispatchType)", "NS_ENUM(uint32_t, MTLDispatchType)",
		"enum MTLDispatchType: is of u32 here, u64"},
	{"an argument's width", "Metal/MTLCommandBuffer.h", "value:(uint64_t)value;\n- (void)encodeWait", "value:(uint32_t)value;\n- (void)encodeWait",
		"MTLCommandBuffer -encodeSignalEvent:value:: argument 2 is u32 here, u64"},
	{"an argument's sign", "MetalPerformanceShadersGraph/MPSGraphTensorShapeOps.h", "dimension:(NSUInteger)dimensionIndex",
		"dimension:(NSInteger)dimensionIndex", "MPSGraph -transposeTensor:dimension:withDimension:name:: argument 2 is i64 here, u64"},
	{"a float for a double", "MetalPerformanceShadersGraph/MPSGraphTensorShapeOps.h", "constantValue:(double)constantValue",
		"constantValue:(float)constantValue", "MPSGraph -padTensor:"},
	{"an object for its address", "Metal/MTLCaptureManager.h", "error:(NSError**)error;", "error:(NSError*)error;",
		"MTLCaptureManager -startCaptureWithDescriptor:error:"},
	{"an object for an array", "Metal/MTLComputeCommandEncoder.h", "setBuffers:(const id<MTLBuffer>*)buffers", "setBuffers:(id<MTLBuffer>)buffers",
		"MTLComputeCommandEncoder -setBuffers:offsets:withRange:: argument 1 is @<MTLBuffer> here"},
	{"another class", "MetalPerformanceShadersGraph/MPSGraphTensorShapeOps.h", "- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor",
		"- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensorData*)tensor", "MPSGraph -reshapeTensor:"},
	{"a result", "Metal/MTLDevice.h", "- (id<MTLHeap>)newHeapWithDescriptor", "- (id<MTLBuffer>)newHeapWithDescriptor",
		"MTLDevice -newHeapWithDescriptor:: returns @<MTLBuffer> here, @<MTLHeap>"},
	{"an integer's sign", "Foundation/NSArray.h", "- (NSUInteger)indexOfObject:(ObjectType)object;", "- (NSInteger)indexOfObject:(ObjectType)object;",
		"NSArray -indexOfObject:: returns i64 here, u64"},
	{"a block's argument", "Metal/MTLEvent.h", "(id<MTLSharedEvent> event, uint64_t value);", "(id<MTLSharedEvent> event, uint32_t value);",
		"MTLSharedEvent -notifyListener:atValue:block:: argument 3 is"},
	{"a selector", "Metal/MTLBuffer.h", "- (void*)contents;", "- (void*)content;", "MTLBuffer -content: no such method"},
	{"a class method for an instance's", "Metal/MTLBuffer.h", "- (void*)contents;", "+ (void*)contents;", "MTLBuffer +contents: no such method"},
	{"an instance method for a class's", "MetalPerformanceShadersGraph/MPSGraph.h", "+ (instancetype)deviceWithMTLDevice:",
		"- (instancetype)deviceWithMTLDevice:", "MPSGraphDevice -deviceWithMTLDevice:: no such method"},
	{"a getter", "Metal/MTLDevice.h", "getter=isLowPower", "getter=lowPower", "MTLDevice -lowPower: no such method"},
	{"a property's type", "Metal/MTLCommandBuffer.h", "@property(readonly) CFTimeInterval GPUStartTime;", "@property(readonly) float GPUStartTime;",
		"MTLCommandBuffer -GPUStartTime: returns f32 here, f64"},
	{"a property that can be set", "Metal/MTLDevice.h", "@property(readonly) NSUInteger maxBufferLength;", "@property NSUInteger maxBufferLength;",
		"MTLDevice -setMaxBufferLength:: no such method"},
	{"a superclass", "MetalPerformanceShaders/MPSNDArray/MPSNDArrayKernel.h", "@interface MPSNDArrayUnaryKernel : MPSNDArrayMultiaryKernel",
		"@interface MPSNDArrayUnaryKernel : MPSNDArrayMultiaryBase",
		"MPSNDArrayUnaryKernel superclass: is MPSNDArrayMultiaryBase here, MPSNDArrayMultiaryKernel"},
	{"a protocol that is conformed to", "Metal/MTLHeap.h", "@protocol MTLHeap <NSObject>", "@protocol MTLHeap <NSObject, NSCopying>",
		"MTLHeap <NSCopying>: Apple's does not conform"},
	{"a class that Apple lacks", "Metal/MTLEvent.h", "@protocol MTLEvent <NSObject>",
		"@interface MTLFence : NSObject\n@end\n@protocol MTLEvent <NSObject>", "MTLFence: no such class"},
	{"the order of fields", "Metal/MTLTypes.h", "NSUInteger width, height, depth;", "NSUInteger height, width, depth;",
		"struct MTLSize: has height:u64 width:u64"},
	{"a field's type", "Metal/MTLTypes.h", "  NSUInteger size;\n  NSUInteger align;", "  uint32_t size;\n  NSUInteger align;",
		"struct MTLSizeAndAlign: has size:u32"},
	{"a function's result", "dispatch/dispatch.h", "intptr_t dispatch_semaphore_signal(", "int dispatch_semaphore_signal(",
		"dispatch_semaphore_signal(): returns i32 here, i64"},
	{"a function that Apple lacks", "Metal/MTLDevice.h", "NSArray* MTLCopyAllDevices(void)", "NSArray* MTLCopyAllGPUs(void)",
		"MTLCopyAllGPUs(): no such function"},
}

func TestInjectedDifferencesAreFound(t *testing.T) {
	root, _ := hosttest.Root(t)
	table, reasons := tableAndReasons(t)
	files := headerFiles(t)
	for _, test := range injectedDifferences {
		t.Run(test.name, func(t *testing.T) {
			changed := maps.Clone(files)
			if !strings.Contains(changed[test.file], test.old) {
				t.Fatalf("%s has no %q any more", test.file, test.old)
			}
			changed[test.file] = strings.Replace(changed[test.file], test.old, test.new, 1)
			all := apple.Unexplained(apple.Compare(declared(t, root, changed), table), reasons)
			if !slices.ContainsFunc(all, func(problem string) bool { return strings.HasPrefix(problem, test.found) }) {
				t.Errorf("found %q, want %q", all, test.found)
			}
		})
	}
}
