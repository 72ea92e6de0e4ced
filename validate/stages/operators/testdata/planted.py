"""Operators with one fault each, and controls without: what the stage must find, and under which name."""

import os
import threading
import time

import torch
from torch.testing._internal.common_dtype import _dispatch_dtypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput


def of_worker():
    return threading.current_thread().name.startswith("worker")


def right(x):
    return x * 2


last = {}


def shared_state(x):
    """Keeps its argument where other threads overwrite it."""
    last["x"] = x
    time.sleep(0.001)
    return last["x"] * 2


def unordered(x):
    """Reads what another stream has written, with nothing that orders the two: as an extension that keeps a stream's pointer."""
    if x.device.type != "mps":
        return x * 2
    import _mpsforge_hostmps

    copy = torch.empty_like(x)
    _mpsforge_hostmps.encode_copy_on(copy, x, torch.mps.current_stream().stream_id)
    return copy * 2


def raises(x):
    if of_worker():
        raise RuntimeError("planted")
    return x * 2


def dies(x):
    if of_worker():
        os.abort()
    return x * 2


def hangs(x):
    if of_worker():
        time.sleep(1000)
    return x * 2


def dies_alone(x):
    os.abort()


def absent(x):
    return torch.cholesky_inverse(x)


def unlike_cpu(x):
    return x * (2 if x.device.type == "mps" else 3)


def not_deterministic(x):
    last["calls"] = last.get("calls", 0) + 1
    return x * last["calls"]


def reads_unwritten(x):
    return x + torch.empty_like(x)


def uniform(x):
    return torch.rand_like(x)


def changes_argument(x):
    x.add_(1)
    return x * 2


library = torch.library.Library("planted", "DEF")
library.define("writes_argument(Tensor x) -> Tensor")


def write_argument(x):
    x.add_(1)
    return x * 2


for key in ("CPU", "MPS"):
    library.impl("writes_argument", write_argument, key)


def writes_argument(x):
    """As changes_argument, by an operator whose schema says that it does not."""
    return torch.ops.planted.writes_argument(x)


def samples(op, device, dtype, requires_grad, **kwargs):
    for size in (3, 5, 7, 9):
        yield SampleInput(torch.randn(size, size, dtype=dtype, device=device, requires_grad=requires_grad))


entries = [
    OpInfo("planted_" + op.__name__, op=op, dtypes=_dispatch_dtypes((torch.float32,)), sample_inputs_func=samples, supports_out=False, supports_autograd=False)
    for op in (right, shared_state, unordered, raises, dies, hangs, dies_alone, absent, unlike_cpu, not_deterministic, reads_unwritten, uniform, changes_argument, writes_argument)
]
