"""Has operators run PyTorch's own Metal kernels on device mps and compares each value with the CPU's.

Prints one JSON object: the kernels whose values were compared, the cases that were wrong or ended in an error, and what
the software Metal found, where it goes on after a violation.
"""

import ctypes
import json
import warnings
from collections.abc import Callable, Iterator

import torch
from findings import findings

FLOATS = [torch.float, torch.half]
try:
    torch.ones(1, dtype=torch.bfloat16, device="mps")
    FLOATS.append(torch.bfloat16)
except TypeError:
    pass  # before macOS 14 PyTorch has no bfloat16 there, and takes another library
WHOLE = [torch.long, torch.int, torch.short, torch.int8, torch.uint8]
CLOSE = {torch.half: 1e-2, torch.bfloat16: 4e-2}

Case = tuple[str, Callable[..., object], tuple[object, ...], float]


def number(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def of(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Random numbers as another type; whole ones are not all 0."""
    return tensor.to(dtype) if dtype.is_floating_point else (tensor.abs() * 5 + 1).to(dtype)


def wide(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The function, which the CPU does not have for 16 bits: there it is computed in float."""

    def call(*inputs: torch.Tensor) -> torch.Tensor:
        if inputs[0].device.type == "mps":
            return function(*inputs)
        result = function(*[i.float() if i.is_floating_point() else i for i in inputs])
        return result.to(inputs[0].dtype) if inputs[0].is_floating_point() else result

    return call


def next_after(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.device.type == "cpu" and a.dtype == torch.half:
        import numpy

        return torch.from_numpy(numpy.nextafter(a.numpy(), b.numpy()))
    return torch.nextafter(a, b)


def elements() -> Iterator[Case]:
    a, b = number(37, 5), number(37, 5)
    for dtype in FLOATS:
        for function in (torch.fmax, torch.fmin):
            yield f"{function.__name__} {dtype}", function, (of(a, dtype), of(b, dtype).t().contiguous().t()), 0
        yield f"nextafter {dtype}", next_after, (of(a, dtype), of(b, dtype)), 0
    for dtype in FLOATS + WHOLE + [torch.bool]:
        yield f"copysign {dtype}", torch.copysign, (of(a, dtype), of(b, dtype)), 0
        for function in (torch.special.i0, torch.special.i1):
            yield f"{function.__name__} {dtype}", wide(function), (of(a, dtype),), 0
        if dtype != torch.bool:
            three = number(9, 3), number(9, 3)
            yield f"cross {dtype}", torch.linalg.cross, (of(three[0], dtype), of(three[1], dtype)), 0
    for dtype in (torch.float, torch.half):
        yield f"complex {dtype}", torch.complex, (of(a, dtype), of(b, dtype)), 0
        yield f"polar {dtype}", wide_polar, (of(a, dtype), of(b, dtype)), 1e-5 if dtype == torch.float else 1e-2
        pair = torch.complex(of(a, dtype), of(b, dtype))
        yield f"complex product {dtype}", wide_product, (pair, torch.complex(of(b, dtype), of(a, dtype))), 1e-2
    for dtype in FLOATS:
        yield f"renorm {dtype}", wide(lambda x: torch.renorm(x, 2, 0, 1.0)), (of(a, dtype),), 0


def wide_polar(size: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    if size.device.type == "mps":
        return torch.view_as_real(torch.polar(size, angle)).float()
    return torch.view_as_real(torch.polar(size.float(), angle.float()))


def wide_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.device.type == "mps":
        return torch.view_as_real(a * b).float()
    return torch.view_as_real(a.to(torch.complex64) * b.to(torch.complex64))


def places() -> Iterator[Case]:
    for dtype in FLOATS + WHOLE:
        rows, wanted = of(number(4, 33) * 3, dtype), of(number(4, 7) * 3, dtype)
        rows, order = rows[:, torch.randperm(33)], None
        ordered, order = torch.sort(rows, 1)
        for small in (False, True):
            for right in (False, True):
                yield (f"searchsorted {dtype}", lambda r, w, s=small, g=right: torch.searchsorted(r, w, out_int32=s, right=g),
                       (ordered, wanted), 0)  # fmt: skip
                yield (f"searchsorted {dtype} by order",
                       lambda r, w, o, s=small, g=right: torch.searchsorted(r, w, sorter=o, out_int32=s, right=g),
                       (rows, wanted, order), 0)  # fmt: skip
    at = torch.randint(-9, 9, (41,))
    for dtype in [torch.bool, torch.uint8, torch.half, torch.float, torch.int, torch.long]:
        source, values = of(number(9, 6), dtype), of(number(41, 6), dtype)
        yield f"index {dtype}", lambda x, i: x[i], (source, at), 0
        once = torch.randperm(9)[:5]
        yield f"index_put {dtype}", lambda x, i, v: x.clone().index_put_((i,), v), (source, once, values[:5]), 0
        yield f"index_put in turn {dtype}", in_turn, (source, at, values), 0
        if dtype in (torch.float, torch.int):
            yield (f"index_put added {dtype}", lambda x, i, v: x.clone().index_put_((i,), v, accumulate=True),
                   (source, at, values), 1e-5)  # fmt: skip
    for dtype in (torch.int, torch.long):
        yield f"repeat_interleave {dtype}", torch.repeat_interleave, (torch.randint(0, 6, (50,), dtype=dtype),), 0
        for function in (torch.tril_indices, torch.triu_indices):
            for offset in (-2, 0, 3):
                yield (f"{function.__name__} {dtype}",
                       lambda x, f=function, o=offset, d=dtype: f(13, 9, o, dtype=d, device=x.device),
                       (torch.ones(1),), 0)  # fmt: skip


def in_turn(x: torch.Tensor, at: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The last one of equal indices stays."""
    torch.use_deterministic_algorithms(True)
    try:
        return x.clone().index_put_((at,), values)
    finally:
        torch.use_deterministic_algorithms(False)


def images() -> Iterator[Case]:
    image = number(2, 3, 8, 9)
    kinds = [torch.bool, *FLOATS, torch.complex64]
    for dtype in kinds:
        picture = torch.complex(image, image + 1) if dtype.is_complex else of(image, dtype)
        yield f"im2col {dtype}", lambda x: torch.nn.functional.unfold(x, 3, 2, 1, 2), (picture,), 0
    half = torch.complex(image.half(), image.half())
    yield "im2col complex half", half_unfold, (half,), 0
    for dtype in FLOATS:
        for align in (False, True):

            def larger(x: torch.Tensor, a: bool = align) -> torch.Tensor:
                return torch.nn.functional.interpolate(x, size=(11, 13), mode="bicubic", align_corners=a)

            def gradient(x: torch.Tensor, a: bool = align) -> torch.Tensor:
                x = x.detach().requires_grad_()
                torch.nn.functional.interpolate(x, size=(11, 13), mode="bicubic", align_corners=a).sin().sum().backward()
                assert x.grad is not None
                return x.grad

            yield f"bicubic {dtype}", wide(larger), (of(image, dtype),), 1e-4
            yield f"bicubic backward {dtype}", wide(gradient), (of(image, dtype),), 1e-4
        steps = of(number(4, 4), dtype)
        yield f"unfold_backward {dtype}", lambda g: torch.ops.aten.unfold_backward(g, [10], 0, 4, 2), (steps,), 0
    points = torch.rand(60, 2)
    for dtype in FLOATS[:1]:
        for weight in (None, torch.rand(60)):
            yield (f"histogramdd {dtype}",
                   lambda x, *w: torch.histogramdd(x, [3, 4], range=[0.0, 1.0, 0.0, 1.0], weight=w[0] if w else None)[0],
                   (points.to(dtype), *([] if weight is None else [weight.to(dtype)])), 1e-5)  # fmt: skip


def half_unfold(x: torch.Tensor) -> torch.Tensor:
    if x.device.type == "mps":
        return torch.view_as_real(torch.nn.functional.unfold(x, 3, 2, 1, 2)).float()
    return torch.view_as_real(torch.nn.functional.unfold(x.to(torch.complex64), 3, 2, 1, 2))


def products() -> Iterator[Case]:
    for dtype in FLOATS:
        # Longer than 2^15: the graph's product is not used.
        yield f"mm {dtype}", wide(torch.mm), (of(number(3, 5), dtype), of(number(5, 32800), dtype)), 1e-2
        for rows in (3, 40):
            a, b = of(number(rows, 64), dtype), torch.randint(-128, 127, (64, 64), dtype=torch.int8)
            yield f"int8 {rows} rows {dtype}", eight, (a, b, of(torch.rand(64), dtype)), 3e-2
        for group in (32, 64, 128, 256):
            yield f"int4 by {group} {dtype}", four, (of(number(5, 512), dtype), torch.randint(0, 16, (64, 512), dtype=torch.int),
                                                     of(torch.rand(512 // group, 64, 2), dtype), torch.tensor(group)), 3e-2  # fmt: skip


def eight(a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    if a.device.type == "mps":
        return torch._weight_int8pack_mm(a, b, scale)
    return ((a.float() @ b.float().t()) * scale.float()).to(a.dtype)


def four(a: torch.Tensor, b: torch.Tensor, scales: torch.Tensor, group: torch.Tensor) -> torch.Tensor:
    size = int(group)
    if a.device.type == "mps":
        b = b.cpu()
        packed = torch._convert_weight_to_int4pack((b[:, 1::2] | b[:, ::2] << 4).to(torch.uint8).to("mps"), 2)
        return torch._weight_int4pack_mm(a, packed, size, scales) / 16
    scale, zero = (scales[..., i].float().t().repeat_interleave(size, 1) for i in (0, 1))
    return (a.float() @ ((b.float() - 8) * scale + zero).t()).to(a.dtype) / 16  # of some 50, with 16 bits


def optimizers() -> Iterator[Case]:
    start, gradient = number(700), number(700)
    gradient = gradient.sign() * (gradient.abs() + 0.5)  # in 16 bits the square of less would be 0
    for dtype in FLOATS:
        for step_type in FLOATS:
            if {dtype, step_type} == {torch.half, torch.bfloat16}:
                continue  # PyTorch has no such kernel
            for step in (torch._fused_adam_, torch._fused_adamw_):
                for greatest in (False, True):

                    def adam(p: torch.Tensor, g: torch.Tensor, s: Callable[..., None] = step, most: bool = greatest,
                             kind: torch.dtype = step_type) -> torch.Tensor:  # fmt: skip
                        on_cpu = p.device.type == "cpu"
                        p, g = (x.float() if on_cpu else x.clone() for x in (p, g))
                        p = p.clone()
                        m, v, w = (torch.zeros_like(p) for _ in range(3))
                        at = torch.ones((), device=p.device, dtype=torch.float if on_cpu else kind)
                        for _ in range(2):
                            s([p], [g], [m], [v], [w] if most else [], [at], lr=0.1, beta1=0.9, beta2=0.99,
                              weight_decay=0.1, eps=1e-4, amsgrad=most, maximize=False)  # fmt: skip
                        return p.float()

                    yield f"{step.__name__} {dtype} {step_type}", adam, (of(start, dtype), of(gradient, dtype)), 2e-2
        for momentum in (0.0, 0.9):

            def descent(p: torch.Tensor, g: torch.Tensor, m: float = momentum) -> torch.Tensor:
                on_cpu = p.device.type == "cpu"
                p, g = (x.float() if on_cpu else x for x in (p, g))
                p, buffer = p.clone(), torch.zeros_like(p)
                for first in (True, False):
                    torch._fused_sgd_([p], [g.clone()], [buffer] if m else [], weight_decay=0.1, momentum=m, lr=0.1,
                                      dampening=0.0, nesterov=False, maximize=False, is_first_step=first)  # fmt: skip
                return p.float()

            yield f"sgd {dtype}", descent, (of(start, dtype), of(gradient, dtype)), 2e-2


def kernels_run() -> set[str]:
    library = ctypes.CDLL("libmpsforge_objc.so")
    text = ctypes.create_string_buffer(1 << 20)
    library.mpsforge_host_translated(text, ctypes.c_size_t(len(text)))
    return set(text.value.decode().split())


def main() -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    compared: set[str] = set()
    wrong: list[str] = []
    before = kernels_run()
    for cases in (elements, places, images, products, optimizers):
        for name, function, inputs, tolerance in cases():
            try:
                on_mps = function(*[i.to("mps") if isinstance(i, torch.Tensor) else i for i in inputs])
                torch.mps.synchronize()
                now = kernels_run()
                on_cpu = function(*inputs)
                close = max(tolerance, CLOSE.get(on_cpu.dtype, 1e-5 if on_cpu.dtype.is_floating_point else 0))
                torch.testing.assert_close(on_mps.cpu(), on_cpu, rtol=close, atol=close, equal_nan=True)
                compared |= now - before
            except (AssertionError, RuntimeError, NotImplementedError, TypeError) as error:
                wrong.append(f"{name}: {str(error)[:300]}")
            before = kernels_run()
    print(json.dumps({"compared": sorted(compared), "wrong": wrong, "findings": findings()}))


main()
