package checkout

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/reports"
)

// What counts as a use off the queue: the lines marked with H, in the function named there, and no other.
func TestQueueUses(t *testing.T) {
	for name, c := range map[string]struct{ source, function string }{
		"in a block on the queue": {`
void MPSStream::fill() {
  dispatch_sync(_serialQueue, ^() { @autoreleasepool { id e = stream->commandEncoder(); } });
}`, ""},
		"in a block given to a qualified helper": {`
Tensor layer_norm(const Tensor& x) {
  at::native::mps::dispatch_sync_with_rethrow(queue(a, b), ^{ if (x) { use([stream->commandEncoder() label]); } });
}`, ""},
		"in a block that is waited for off the queue": {`
void MPSStream::copy() {
  runAndAwait(this, ^() { id b = [commandBuffer() blitCommandEncoder]; });
}`, ""},
		"before the block": {`
namespace at { namespace {
Tensor renorm(const Tensor& x) {
  id e = stream->commandEncoder(); // H
  dispatch_sync(q, ^() { [e end]; });
}}}`, "renorm"},
		"after the block": {`
void hook() const override {
  dispatch_sync(q, ^(void) { [e end]; });
  return stream.commandBuffer();} // H`, "hook"},
		"in a block that is given to something else": {`
void event() {
  [buffer addCompletedHandler:^(id<MTLCommandBuffer> b) { stream->commandBuffer(); }]; // H
}`, "event"},
		"the stream itself": {`
id MPSStream::commandEncoder() {
  return [commandBuffer() computeCommandEncoder]; // H
}`, "MPSStream::commandEncoder"},
		"declarations, variables and types": {`
class MPSStream { MPSCommandBuffer* commandBuffer(); id<MTLComputeCommandEncoder> commandEncoder(); };
void f() { id commandBuffer = nil; id<A> commandEncoder = g(commandBuffer); }`, ""},
		"comments, strings and shaders": {`
// stream->commandBuffer()
static const char* TEXT = R"METAL( x->commandBuffer(); " )METAL"; char c = '"'; int big = 1'000;
void f() { log("stream->commandBuffer() { \" "); /* a->commandEncoder() */ }`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			for _, use := range queueUses("f.mm", c.source) {
				if !use.onQueue {
					found = append(found, fmt.Sprint(use.line, " ", use.function))
				}
			}
			var expected []string
			for i, line := range strings.Split(c.source, "\n") {
				if strings.Contains(line, "// H") {
					expected = append(expected, fmt.Sprint(i+1, " ", c.function))
				}
			}
			require.Equal(t, found, expected)
		})
	}
}

// A fault that is put into a checkout is named with its place.
func TestUseOffTheQueueFailsTheCheckoutStage(t *testing.T) {
	dir := t.TempDir()
	require.File(t, filepath.Join(dir, "aten/src/ATen/native/mps/operations/New.mm"), "void op() {\n  auto e = getCurrentMPSStream()->commandEncoder();\n}\n")
	report := &reports.Stage{}
	require.NoError(t, checkQueueUses(dir, []string{"aten/src/ATen/native/mps"}, report))
	if len(report.Checks) != 1 || report.Checks[0].Verdict != reports.Failed || report.Checks[0].Subject != "aten/src/ATen/native/mps/operations/New.mm:2" {
		t.Errorf("%+v", report.Checks)
	}
}

// Sources in which the check recognizes nothing are not sources without a fault.
func TestCheckoutWithNothingToJudgeFails(t *testing.T) {
	dir := t.TempDir()
	require.File(t, filepath.Join(dir, "aten/src/ATen/native/mps/operations/New.mm"), "void op() {\n  [getCurrentMPSStream() encoder];\n}\n")
	report := &reports.Stage{}
	require.NoError(t, checkQueueUses(dir, []string{"aten/src/ATen/native/mps"}, report))
	if len(report.Checks) != 1 || report.Checks[0].Verdict != reports.Failed || !strings.Contains(report.Checks[0].Detail, "nothing was judged") {
		t.Errorf("%+v", report.Checks)
	}
}
