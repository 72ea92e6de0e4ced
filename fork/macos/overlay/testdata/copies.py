"""Copies that begin in libtorch_cpu's own copy_ end before its branch into torch's own copy of the backend, which nothing leads."""

import warnings
from collections.abc import Callable

import torch

warnings.simplefilter("ignore")  # these layouts are in beta state
ones = torch.ones(2, 2)
quantized, dense = torch.quantize_per_tensor(ones, 1.0, 0, torch.qint8), ones.to("mps")
for name, call in dict[str, Callable[[], object]](
    sparse=lambda: dense.copy_(ones.to_sparse()),
    to_sparse=lambda: ones.to_sparse().copy_(dense),
    sparse_on_mps=lambda: ones.to_sparse().to("mps"),
    compressed=lambda: dense.copy_(ones.to_sparse_csr()),
    quantized=lambda: dense.copy_(quantized),
    quantized_on_mps=lambda: quantized.to("mps"),
    mkldnn=lambda: dense.copy_(ones.to_mkldnn()),
    nested=lambda: dense.copy_(torch.nested.nested_tensor([ones[0], ones[1]])),
).items():
    try:
        call()
    except RuntimeError as error:  # NotImplementedError is one
        print(f"{name}: {str(error).splitlines()[0]}")
    else:
        raise AssertionError(f"{name} copied")
print("ok")
