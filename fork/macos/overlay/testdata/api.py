"""What the series adds to torch.mps, through the overlay's C interface."""

import torch

stream = torch.mps.Stream()
with torch.mps.stream(stream):
    assert torch.mps.current_stream() == stream
    ones = torch.ones(64, device="mps")
    event = stream.record_event()
event.synchronize()
assert event.query() and stream.query()
assert torch.mps.stream_pool_stats()["streams"] >= 1
assert torch.mps.graph_cache_stats()["compiled"] >= 1
try:
    torch.mps.set_stream(torch.mps.Stream(stream_id=10**6))
except (RuntimeError, ValueError) as error:
    print("refused:", str(error).splitlines()[0])
else:
    raise AssertionError("a stream that there is not was set")
library = torch.library.Library("overlay_test", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x + x, "MPS")
assert torch.ops.overlay_test.twice(ones).cpu().tolist() == [2.0] * 64
assert torch.rand(3, device="mps").cpu().numel() == 3
source = """
#include <metal_stdlib>
kernel void exp_kernel( device float *to [[buffer(0)]], device float *from [[buffer(1)]], uint place [[thread_position_in_grid]]) {
  to[place] = metal::exp(from[place]);
}
"""
compile_shader = getattr(torch.mps, "compile_shader", None) or torch.mps._compile_shader  # its name in 2.6
shaders = compile_shader(source)
to, given = torch.zeros(8, device="mps"), torch.arange(8, dtype=torch.float32, device="mps") / 8
shaders.exp_kernel(to, given)
assert torch.allclose(to.cpu(), given.cpu().exp(), rtol=1e-4), to.cpu()
assert "exp_kernel" in dir(shaders) and shaders.exp_kernel.max_threads_per_threadgroup > 0
try:
    shaders.no_such_kernel
except RuntimeError as error:
    print("refused:", str(error).splitlines()[0])
else:
    raise AssertionError("a kernel that there is not was found")
print("ok")
