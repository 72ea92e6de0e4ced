"""The backend throws and libtorch_python catches by the type: the class that Python sees says which handler it was."""

from collections.abc import Callable

import torch

ones = torch.ones(2, 2, device="mps")
pair = torch.ones(2, 2, dtype=torch.int64, device="mps")
cases: dict[type[Exception], Callable[[], object]] = {
    TypeError: lambda: torch.empty(2, dtype=torch.float64, device="mps"),
    IndexError: lambda: ones.index_select(0, pair),
    NotImplementedError: lambda: ones.kthvalue(1),  # of the fallback
    RuntimeError: lambda: ones.mm(torch.ones(3, 3, device="mps")),
}
for wanted, call in cases.items():
    try:
        call()
    except Exception as error:
        assert type(error) is wanted, (wanted, error)
    else:
        raise AssertionError(f"no {wanted.__name__}")
print("ok")
