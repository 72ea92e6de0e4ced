"""refused.py STOCK LIBRARY: LIBRARY uses a symbol of stock's that the overlay does not have, and is loaded before torch."""

import ctypes
import os
import sys

for path in sys.argv[1:]:
    ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)

import torch  # noqa: E402  after them

assert torch.ones(2, device="mps").sum().item() == 2
# A kernel that another one took the place of is listed as inactive.
assert "inactive" not in torch._C._dispatch_dump("aten::relu"), torch._C._dispatch_dump("aten::relu")
assert not hasattr(torch.mps, "Stream")
print("stock")
