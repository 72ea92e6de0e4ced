"""Tensors of an entry: its samples, on the device and on the CPU, and how answers are compared."""

import itertools
import random

import torch

MOST_GENERATED = 64  # samples of an entry that the choice is made from; some have thousands


def tensors_of(value):
    """All tensors in nested lists, tuples and dictionaries, and what else is there as text."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in tensors_of(item)]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in tensors_of(item)]
    return [repr(value)]


def mapped(value, change):
    """The same nesting with each tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(mapped(item, change) for item in value)
    return value


def choose_samples(entry, dtype, seed, most, requires_grad):
    """Up to so many samples of the entry, on the CPU, with their numbers: the first one, and others by the seed."""
    torch.manual_seed(seed)
    random.seed(seed)
    generated = entry.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    samples = list(enumerate(itertools.islice(generated, MOST_GENERATED)))
    others = samples[1:]
    random.Random(f"{seed} {entry.full_name} {dtype}").shuffle(others)
    return samples[:1] + others[: most - 1]


class Inputs:
    """The arguments of one call."""

    def __init__(self, sample, change, device):
        keywords = mapped(sample.kwargs, change)
        if keywords.get("device") is not None:
            keywords["device"] = device
        self.first, self.rest, self.keywords = mapped(sample.input, change), mapped(sample.args, change), keywords

    def tensors(self):
        return [leaf for leaf in tensors_of([self.first, self.rest, self.keywords]) if isinstance(leaf, torch.Tensor)]

    def with_copies_of(self, indices):
        """The same with clones of the tensors of these numbers, which the operator changes."""
        if not indices:
            return self
        counter = itertools.count()
        copied = object.__new__(Inputs)

        def change(tensor):
            return tensor.clone() if next(counter) in indices else tensor

        copied.first, copied.rest, copied.keywords = mapped(self.first, change), mapped(self.rest, change), mapped(self.keywords, change)
        return copied


def on_device(sample, device, strided, pending=False):
    """The sample's arguments as they are to be on a device.

    A copy from the CPU has ended when it returns. With pending the last thing that writes them is a command of the device, so that
    another thread's first look at them may come before it has run.
    """
    settle = torch.clone if pending else lambda moved: moved

    def move(tensor):
        plain = tensor.detach()
        if strided and tensor.layout == torch.strided:
            moved = settle(torch.stack([torch.zeros_like(plain), plain], -1).to(device))[..., 1]
        else:
            moved = settle(plain.to(device, copy=True))  # without its base, on the CPU too
        return moved.requires_grad_(tensor.requires_grad)

    return Inputs(sample, move, device)


def read(leaves):
    """The leaves of an answer on the CPU: this is where a thread waits for its result."""
    return [settled(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def settled(tensor):
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.cpu().resolve_conj().resolve_neg()


def count(answer):
    return sum(leaf.numel() if isinstance(leaf, torch.Tensor) else 1 for leaf in answer)


def bits(tensor):
    # A tensor of one element counts as contiguous whatever its stride is; this copy has stride 1.
    return torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.reshape(-1)).view(torch.uint8)


def difference(actual, expected):
    """The first difference of two answers, bit for bit, or an empty text."""
    if len(actual) != len(expected):
        return f"{len(actual)} results, expected {len(expected)}"
    for number, (one, other) in enumerate(zip(actual, expected, strict=True)):
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            if not isinstance(one, type(other)) or one != other:
                return f"result {number}: {one}, expected {other}"
        elif one.shape != other.shape or one.dtype != other.dtype:
            return f"result {number}: {kind(one)}, expected {kind(other)}"
        elif not torch.equal(bits(one), bits(other)):
            wrong = (one.reshape(-1) != other.reshape(-1)) & ~((one != one) & (other != other)).reshape(-1)
            at = int(wrong.nonzero()[0]) if wrong.any() else 0
            return f"result {number}: {int(wrong.sum())} of {one.numel()} wrong, [{at}] {one.reshape(-1)[at].item()!r}, expected {other.reshape(-1)[at].item()!r}"
    return ""


def kind(tensor):
    return f"{tuple(tensor.shape)} {tensor.dtype}"


def outside(actual, alone, undefined):
    """Of a random operator: how an answer differs from what it gave alone in shape, type or magnitude, or an empty text."""
    expected = alone[0]
    if len(actual) != len(expected):
        return f"{len(actual)} results, expected {len(expected)}"
    for number, (one, other) in enumerate(zip(actual, expected, strict=True)):
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            continue
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"result {number}: {kind(one)}, expected {kind(other)}"
        known = torch.stack([answer[number] for answer in alone])
        if undefined or one.numel() == 0 or not known.isfinite().all():
            continue
        bound = 100 * float(known.abs().max()) + 100  # rare values are larger than a few answers show
        bad = ~(one.abs() <= bound)
        if bad.any():
            return f"result {number}: {one[bad][0].item()!r}, expected something up to {bound!r}"
    return ""


def tolerance(entry, dtype):
    """The larger of torch.testing's default tolerances and the entry's own for this type: (relative, absolute)."""
    from torch.testing._comparison import default_tolerances

    relative, absolute = default_tolerances(dtype)
    for decorator in entry.decorators:
        for part in getattr(decorator, "decorators", [decorator]):
            granted = getattr(part, "overrides", {})
            if dtype in granted and hasattr(granted[dtype], "atol"):
                relative, absolute = max(relative, granted[dtype].rtol), max(absolute, granted[dtype].atol)
    return relative, absolute


def far(actual, expected, entry, dtype):
    """How an answer differs from the CPU's by more than the tolerances, or an empty text."""
    if len(actual) != len(expected):
        return f"{len(actual)} results, the CPU gives {len(expected)}"
    relative, absolute = tolerance(entry, dtype)
    for number, (one, other) in enumerate(zip(actual, expected, strict=True)):
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            if not isinstance(one, type(other)) or one != other:
                return f"result {number}: {one}, the CPU gives {other}"
            continue
        try:
            torch.testing.assert_close(one, other, rtol=relative, atol=absolute, equal_nan=True)
        except AssertionError as error:
            return f"result {number}: {' '.join(str(error).split())[:300]}"
    return ""
