"""What a program does on mps over a libtorch that was built for CUDA and is used without it. without_cuda.py PART prints one line."""

import sys

import torch


class Numbers(torch.utils.data.Dataset):
    """Pairs of a number and its double."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.full((4,), float(i)), torch.full((4,), 2.0 * i)


def accelerator() -> str:
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    assert torch.accelerator.current_accelerator() == torch.device("mps") and torch.accelerator.device_count() == 1
    return "mps, no CUDA"


def backward() -> str:
    x = torch.arange(4.0, device="mps", requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [0, 2, 4, 6], x.grad
    return "right"


def data() -> str:
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=True)
    seen = []
    for x, y in loader:
        x, y = x.to("mps", non_blocking=True), y.to("mps", non_blocking=True)
        assert torch.equal((x * 2).cpu(), y.cpu())
        seen += x[:, 0].tolist()
    assert seen == list(range(16)), seen
    return "right"


def compile() -> str:
    def gradients(module: torch.nn.Module, call) -> list[torch.Tensor]:
        module.zero_grad()
        call(torch.ones(2, 8, device="mps")).sum().backward()
        return [parameter.grad.cpu() for parameter in module.parameters()]

    x = torch.arange(8.0, device="mps")
    function = torch.compile(lambda x: torch.relu(x - 3) * 2 + 1)
    assert function(x).tolist() == [1, 1, 1, 1, 3, 5, 7, 9], function(x)
    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).to("mps")
    expected, found = gradients(module, module), gradients(module, torch.compile(module))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(expected, found, strict=True)), (expected, found)
    return "right"


def dlpack() -> str:
    x = torch.arange(4.0, device="mps")
    y = torch.from_dlpack(x)
    y += 1
    assert y.data_ptr() == x.data_ptr() and x.tolist() == [1, 2, 3, 4], x
    return "right"


def cuda() -> str:
    try:
        torch.ones(1, device="cuda")
    except RuntimeError as error:
        return f"RuntimeError: {error}".splitlines()[0]
    return "it worked"


print({f.__name__: f for f in (accelerator, backward, data, compile, dlpack, cuda)}[sys.argv[1]]())
