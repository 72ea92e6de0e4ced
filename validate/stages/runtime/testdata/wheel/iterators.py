"""Kernels that go over a TensorIterator: NAME_LAYOUT[_cast]_TYPES, of c10/metal/indexing.h in the wheel's headers.

What they must compute is what PyTorch's CPU operators make of the same numbers in double precision.
"""

import re
from collections.abc import Callable

import numpy
import torch
from launch import DTYPES, Kernel, Launch, unwritten

F = torch.nn.functional
SP = torch.special
COUNT, ROWS, COLUMNS = 128, 8, 16
SCALAR_TYPES = {torch.int16: 2, torch.uint8: 0}

Function = Callable[..., torch.Tensor]

UNARY: dict[str, Function] = {
    "abs": torch.abs,
    "bessel_j0_forward": SP.bessel_j0,
    "bessel_j1_forward": SP.bessel_j1,
    "bessel_y0_forward": SP.bessel_y0,
    "bessel_y1_forward": SP.bessel_y1,
    "bitwise_not": torch.bitwise_not,
    "entr": SP.entr,
    "erfinv": SP.erfinv,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "i0": SP.i0,
    "i0e": SP.i0e,
    "i1": SP.i1,
    "i1e": SP.i1e,
    "modified_bessel_i0_forward": SP.modified_bessel_i0,
    "modified_bessel_i1_forward": SP.modified_bessel_i1,
    "modified_bessel_k0_forward": SP.modified_bessel_k0,
    "modified_bessel_k1_forward": SP.modified_bessel_k1,
    "scaled_modified_bessel_k0_forward": SP.scaled_modified_bessel_k0,
    "scaled_modified_bessel_k1_forward": SP.scaled_modified_bessel_k1,
    "sinc": torch.sinc,
    "spherical_bessel_j0": SP.spherical_bessel_j0,
}
for name in ("acos asin atan cos cosh erf erfc exp exp2 expm1 log log10 log1p log2 neg round rsqrt sigmoid sin sinh sqrt tan "
             "tanh").split():  # fmt: skip
    UNARY[name] = getattr(torch, name)

BINARY: dict[str, Function] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div_true": torch.true_divide,
    "div_floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "copysign": torch.copysign,
    "xlog1py": SP.xlog1py,
    "zeta": SP.zeta,
    "igamma": torch.igamma,
    "igammac": torch.igammac,
    "make_complex": torch.complex,
    "polar": torch.polar,
    "hardsigmoid_backward": lambda g, x: g * ((x > -3) & (x < 3)) / 6,
    "hardswish_backward": lambda g, x: torch.where(x <= -3, 0, torch.where(x < 3, g * (x / 3 + 0.5), g)),
}
for letter in "tuvw":
    for kind in ("chebyshev_polynomial_", "shifted_chebyshev_polynomial_"):
        BINARY[kind + letter] = getattr(SP, kind + letter)
for kind in ("hermite_polynomial_h", "hermite_polynomial_he"):
    BINARY[kind] = getattr(SP, kind)

# With a scalar as their last argument.
SCALED: dict[str, Function] = {
    "hardshrink": lambda x, a: torch.where((x >= -a) & (x <= a), 0, x),
    "softshrink": lambda x, a: torch.where(x > a, x - a, torch.where(x < -a, x + a, 0)),
    "leaky_relu": lambda x, a: torch.where(x > 0, x, x * a),
    "round_decimals": lambda x, a: torch.round(x, decimals=int(a)),
    "add_alpha": lambda x, y, a: x + a * y,
    "sub_alpha": lambda x, y, a: x - a * y,
    "lerp_alpha": lambda x, y, a: x + a * (y - x),
    "leaky_relu_backward": lambda x, g, a: torch.where(x > 0, g, g * a),
    "shrink_backward": lambda g, x, a: torch.where((x >= -a) & (x <= a), 0, g),
    "native_dropout_mask_and_scale": lambda x, mask, a: x * mask * a,
}

NAME = re.compile(r"^(.+?)_(dense|strided)(_cast)?((?:_(?:%s))+)$" % "|".join(sorted(DTYPES, key=len, reverse=True)))
POSITIVE = {"zeta", "igamma", "igammac", "polar", "log", "log2", "log10", "rsqrt", "sqrt", "entr"}
POLYNOMIAL = re.compile("polynomial")


def numbers(count: int, dtype: torch.dtype, positive: bool) -> torch.Tensor:
    """Small ones, whose sums and products any type has."""
    values = torch.rand(count, generator=GENERATOR) * 3 - (0 if positive else 1.5)
    if dtype == torch.bool:
        return values > 0.7
    if dtype.is_complex:
        return torch.complex(values, values.roll(3) + 0.25).to(dtype)
    if not dtype.is_floating_point:
        return (values * 3).round().abs().to(dtype) if dtype == torch.uint8 or positive else (values * 3).round().to(dtype)
    return (values + 0.125).to(dtype) if positive else values.to(dtype)


GENERATOR = torch.Generator().manual_seed(20)


def wide(tensor: torch.Tensor, real: bool) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if real or tensor.is_floating_point() else tensor.long()


def nextafter(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dtype == torch.half:
        return torch.from_numpy(numpy.nextafter(a.numpy(), b.numpy()))
    return torch.nextafter(a, b)


def expected(name: str, operands: list[torch.Tensor], result: torch.dtype) -> torch.Tensor:
    if name == "nextafter":
        return nextafter(*operands)
    if name == "bitwise_not":
        return torch.bitwise_not(operands[0])
    real = result.is_floating_point or result.is_complex
    values = [wide(o, real) for o in operands]
    function = UNARY.get(name) or BINARY.get(name) or SCALED[name]
    made = function(*values)
    if result == torch.bool:
        return made != 0
    return made.to(result) if not real else made


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, with the first dimension's in steps."""
    return tensor.view(ROWS, COLUMNS).t().contiguous()


def case(kernel: Kernel, all_names: set[str]) -> Launch | None:
    """Nothing, if the kernel is of another kind."""
    found = NAME.match(kernel.name)
    if not found:
        return None
    name, layout, cast = found[1], found[2], found[3] is not None
    if name not in UNARY and name not in BINARY and name not in SCALED and name != "nextafter":
        return None
    types = [DTYPES[t] for t in found[4][1:].split("_")]
    arguments = {a.name: a for a in kernel.arguments}
    output = "out" if "out" in arguments else "output"
    scalar = types[-1] if "alpha" in arguments else None
    if scalar is not None:
        types = types[:-1]
    inputs = ["input", "other"] if "other" in arguments else ["input"]
    if cast:
        # The name has the type in which it computes; the result's is in that of the kernel without casts.
        pattern = re.compile(f"^{name}_dense_(?!cast_)([a-z0-9]+)_{found[4][1:]}$")
        result = next(DTYPES[m[1]] for n in sorted(all_names) if (m := pattern.match(n)))
        computed, given = types[0], [torch.int16, torch.uint8]
    else:
        result, computed = types
        given = [computed] * 2
    positive = name in POSITIVE or cast
    operands = [numbers(COUNT, dtype, positive) for dtype in given[: len(inputs)]]
    if name in BINARY and (name.startswith(("div", "remainder", "fmod", "zeta", "igamma")) or cast):
        for i, operand in enumerate(operands):
            if i == 1 or name.startswith(("zeta", "igamma")):
                operand[operand == 0] = 1
            if name.startswith("zeta") and i == 0:
                operand += 2 if operand.dtype != torch.bool else False
    if POLYNOMIAL.search(name):  # a degree
        degree = torch.arange(COUNT) % (2 if computed == torch.bool else 6)
        operands[1] = degree.to(operands[1].dtype)
        if operands[0].is_floating_point():
            operands[0] = (operands[0] / 1.6).to(operands[0].dtype)
    if name == "tanh" and computed == torch.complex32:
        operands[0] = (operands[0].to(torch.complex64) / 2).to(computed)  # far from its poles, near which half has too few digits
    if name == "native_dropout_mask_and_scale":
        operands[1] = (operands[1] > 0.2).to(operands[1].dtype)
    memory: dict[str, object] = {n: o for n, o in zip(inputs, operands, strict=True)}
    values = [o.to(computed) for o in operands]
    if scalar is not None:
        alpha = torch.tensor(2 if not scalar.is_floating_point else 0.5).to(scalar)
        memory["alpha"] = alpha
        values.append(alpha)
    want = expected(name, values, result)
    shape: tuple[int, ...] = (COUNT,)
    if layout == "strided":
        # The output is as it comes; what is read is the transposed of it.
        shape = (ROWS, COLUMNS)
        want = want.view(shape)
        memory.update({n: transposed(o) for n, o in zip(inputs, operands, strict=True)})
        in_bytes = "other" in arguments
        memory["sizes"] = torch.tensor([COLUMNS, ROWS])
        width = torch.empty(0, dtype=result).element_size() if in_bytes else 1
        memory["output_strides"] = torch.tensor([1, COLUMNS]) * width
        for n, o in zip(inputs, operands, strict=True):
            memory[n + "_strides"] = torch.tensor([ROWS, 1]) * (o.element_size() if in_bytes else 1)
        kinds = [SCALAR_TYPES[o.dtype] for o in operands] if cast else [0, 0]
        memory["ndim"] = memory["ndim_types"] = torch.tensor([2, *kinds, 0], dtype=torch.int32)
    elif cast:
        memory["sizes_types"] = torch.tensor(
            [o.element_size() for o in operands] + [SCALAR_TYPES[o.dtype] for o in operands], dtype=torch.int32
        )
    memory[output] = unwritten(shape, result)
    exact = 0.0 if name == "nextafter" else None
    return Launch(memory, {output: want}, (COUNT, 1, 1), (64, 1, 1), exact)
