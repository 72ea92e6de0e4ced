"""Kernels that are no iterators': for each family its operands, its grid as PyTorch chooses it, and what must come of it.

A family is a part of a name; the memory is by the names of arguments, which the library's metadata has.
"""

import math
import re
from collections.abc import Callable, Sequence

import torch
from iterators import numbers
from launch import DTYPES, Kernel, Launch, unwritten

F = torch.nn.functional
SP = torch.special

Case = Callable[[Kernel, "re.Match[str]"], Launch]
FAMILIES: list[tuple[re.Pattern[str], Case]] = []
TYPE = "(" + "|".join(sorted(DTYPES, key=len, reverse=True)) + ")"


def family(pattern: str) -> Callable[[Case], Case]:
    """A case for the kernels whose whole names match; TYPE in the pattern is one of a kernel's types."""

    def add(case: Case) -> Case:
        FAMILIES.append((re.compile("^" + pattern.replace("TYPE", TYPE) + "$"), case))
        return case

    return add


def case(kernel: Kernel) -> Launch | None:
    for pattern, make in FAMILIES:
        if found := pattern.match(kernel.name):
            return make(kernel, found)
    return None


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def longs(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def floats(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """As the numbers in which what is expected is computed."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def shaped(dtype: torch.dtype, *shape: int, positive: bool = False) -> torch.Tensor:
    return numbers(math.prod(shape), dtype, positive).view(*shape)


@family("(digamma|lgamma|trigamma)_TYPE_TYPE")
def gamma(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = numbers(128, DTYPES[found[2]], True)
    x = x + 1 if x.dtype != torch.bool else torch.ones_like(x)
    function = {"digamma": torch.digamma, "lgamma": torch.lgamma, "trigamma": lambda v: torch.polygamma(1, v)}[found[1]]
    out = unwritten([128], DTYPES[found[3]])
    return Launch({"input": x, "output": out}, {"output": function(x.double())})


@family("polygamma_TYPE_TYPE")
def polygamma(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = numbers(128, DTYPES[found[1]], True)
    x = x + 1 if x.dtype != torch.bool else torch.ones_like(x)
    out = unwritten([128], DTYPES[found[2]])
    return Launch({"input": x, "output": out, "order": longs(2)}, {"output": torch.polygamma(2, x.double())})


@family("renorm_TYPE")
def renorm(kernel: Kernel, found: "re.Match[str]") -> Launch:
    norm = numbers(128, DTYPES[found[1]], True)
    want = torch.where(norm.double() > 1, 1 / (norm.double() + 1e-7), 1)
    return Launch({"norm": norm, "factor": unwritten([128], norm.dtype), "maxnorm": floats(1)}, {"factor": want})


@family("repeat_interleave_int(32|64)_t")
def repeat_interleave(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype = torch.int32 if found[1] == "32" else torch.int64
    repeat = (torch.arange(128) * 7 % 4).to(dtype)
    want = torch.repeat_interleave(repeat.long()).to(dtype)
    memory = {"repeat_ptr": repeat, "cumsum_ptr": repeat.cumsum(0, dtype=torch.int64), "result_ptr": unwritten(want.shape, dtype)}
    return Launch(memory, {"result_ptr": want})


@family("(tril|triu)_indices_TYPE")
def triangle_indices(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, size = DTYPES[found[2]], 16
    make = torch.tril_indices if found[1] == "tril" else torch.triu_indices
    want = make(size, size, dtype=torch.int64).to(dtype)
    count = want.shape[1]
    lower = {"row_offset": longs(0), "m_first_row": longs(1), "trapezoid_size": longs(count), "tril_size": longs(count)}
    upper = {"col_offset": longs(0), "m_first_row": longs(size), "rectangle_size": longs(0), "triu_size": longs(count)}
    memory = {"tensor": unwritten(want.shape, dtype), "col": longs(size), **(lower if found[1] == "tril" else upper)}
    return Launch(memory, {"tensor": want}, (count, 1, 1))


@family("(tril|triu)(_inplace)?_(?:int|long)_TYPE")
def triangle(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = shaped(DTYPES[found[3]], 16, 8)
    want = wide(x).tril() if found[1] == "tril" else wide(x).triu()
    # Sizes and strides from the innermost dimension outwards.
    shape = {"sizes": ints(8, 16), "k_ndim": ints(0, 2)}
    wants_long = "_long_" in kernel.name
    strides = longs(1, 8) if wants_long else ints(1, 8)
    if found[2]:
        kept = x.clone()
        return Launch({"self": kept, "strides": strides, **shape}, {"self": want}, (8, 16, 1), (8, 8, 1))
    out = unwritten([16, 8], x.dtype)
    return Launch({"out": out, "inp": x, "out_strides": strides, "inp_strides": strides, **shape}, {"out": want}, (8, 16, 1), (8, 8, 1))


INTS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
BITS = {"8": torch.uint8, "16": torch.int16, "32": torch.int32, "64": torch.int64}


@family("masked_fill_scalar_(dense|broadcast|strided)_(8|16|32|64)bit")
def masked_fill(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x, mask = shaped(BITS[found[2]], 8, 16), torch.arange(16) % 3 == 0
    rows = mask.expand(8, 16).contiguous()
    want = x.masked_fill(rows, 77)
    memory: dict[str, object] = {"input": x.clone(), "mask": rows, "val": torch.tensor(77, dtype=x.dtype)}
    if found[1] == "broadcast":
        memory |= {"mask": mask, "mask_numel": ints(16)}
    if found[1] == "strided":
        memory |= {"sizes": longs(16, 8), "input_strides": longs(1, 16), "mask": mask, "mask_strides": longs(1, 0), "ndim": ints(2)}
    return Launch(memory, {"input": want})


@family("index_copy_(dense|strided)_TYPE_TYPE")
def index_copy(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x, source = shaped(DTYPES[found[2]], 16, 8), shaped(DTYPES[found[2]], 5, 8)
    at = torch.tensor([3, 15, 0, 7, 9]).to(DTYPES[found[3]])
    want = x.clone()
    want[at.long()] = source
    out = unwritten([16, 8], x.dtype)
    memory: dict[str, object] = {"output": out, "input": x, "source": source, "indices": at, "dim": ints(0), "sizes": longs(16, 8)}
    memory |= {"ndim": ints(2), "indices_numel": ints(5)}
    memory |= {"input_strides": longs(8, 1), "output_strides": longs(8, 1), "source_strides": longs(8, 1), "indices_stride": longs(1)}
    return Launch(memory, {"output": want})


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(wide(a), wide(b))


@family("(matmul|addmm|naive_bmm)_TYPE")
def matrices(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype = DTYPES[found[2]]
    batch = 2 if found[1] == "naive_bmm" else 1
    a, b = shaped(dtype, batch, 20, 13), shaped(dtype, batch, 13, 35)
    bias = shaped(dtype, 20, 35)
    out = unwritten([batch, 20, 35], dtype)
    want = product(a, b)
    memory: dict[str, object] = {"mat1Data": a, "mat2Data": b, "outputData": out}
    threads = (48, 32, batch)
    if found[1] == "naive_bmm":
        memory |= {"strides": longs(1, 13, 20 * 13, 1, 35, 13 * 35, 1, 35, 20 * 35), "sizes": ints(20, 13, 35, batch)}
    else:
        memory |= {"strides": longs(13, 1, 35, 1, 35, 1, 35, 1), "sizes": ints(20, 13, 35, 0), "biasData": bias}
    if found[1] == "addmm":
        # Two numbers, of a type as wide as the metadata says.
        width = next(a.size for a in kernel.arguments if a.name == "alpha_beta") // 2
        kinds = {4: torch.float, 2: dtype, 8: torch.complex64} if dtype.is_floating_point or dtype.is_complex else INTS
        memory["alpha_beta"] = torch.tensor([2, 3]).to(kinds[width])
        want = 2 * want + 3 * wide(bias)
    return Launch(memory, {"outputData": want}, threads, (16, 16, 1))


@family("cross_TYPE")
def cross(kernel: Kernel, found: "re.Match[str]") -> Launch:
    a, b = shaped(DTYPES[found[1]], 128, 3), shaped(DTYPES[found[1]], 128, 3)
    out = unwritten([128, 3], a.dtype)
    width = 3 * a.element_size()
    places = torch.tensor([[i * width] * 3 + [0] for i in range(128)], dtype=torch.int32)
    stride = longs(1)
    x, y = (v.double() if v.is_floating_point() else v.long() for v in (a, b))
    want = torch.linalg.cross(x, y)
    memory = {"input_": a, "other_": b, "out_": out, "offsets": places, "outStride": stride, "inputStride": stride, "otherStride": stride}
    return Launch(memory, {"out_": want if a.dtype != torch.bool else want != 0})


def scan_groups(dtype: torch.dtype) -> int:
    return 2 if dtype.itemsize == 8 else 4


@family("(cummax|cummin|logcumsumexp)_(innermost|outer)_TYPE")
def scan(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, axis = DTYPES[found[3]], 200
    inner = found[2] == "innermost"
    x = shaped(dtype, 3, axis) if inner else shaped(dtype, 2, axis, 40)
    dim = 1
    memory: dict[str, object] = {"in": x, "axis_size": longs(axis)}
    expected: dict[str, torch.Tensor] = {}
    if found[1] == "logcumsumexp":
        memory["out"] = unwritten(x.shape, dtype)
        expected["out"] = torch.logcumsumexp(wide(x), dim)
    else:
        values, places = (torch.cummax if found[1] == "cummax" else torch.cummin)(x, dim)
        memory |= {"out_values": unwritten(x.shape, dtype), "out_indices": unwritten(x.shape, torch.int64)}
        expected |= {"out_values": values, "out_indices": places}
    if inner:
        return Launch(memory, expected, (64, 3, 1), (64, 1, 1))
    # PyTorch's grid: each threadgroup has 32 columns.
    memory |= {"stride": longs(40), "stride_blocks": longs(2)}
    group = 32 // scan_groups(dtype) * 32
    return Launch(memory, expected, (group, 4, 1), (group, 1, 1))


@family("layer_norm_(single_row|looped)_TYPE")
def layer_norm(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, rows, axis = DTYPES[found[2]], 3, 250 if found[1] == "single_row" else 4100
    group = 64 if found[1] == "single_row" else 1024
    x, weight, bias = shaped(dtype, rows, axis), shaped(dtype, axis), shaped(dtype, axis)
    v = wide(x)
    mean, rstd = v.mean(1), 1 / torch.sqrt(v.var(1, unbiased=False) + 1e-5)
    want = F.layer_norm(v, [axis], wide(weight), wide(bias), 1e-5)
    memory: dict[str, object] = {"input": x, "output": unwritten(x.shape, dtype), "weight": weight, "bias": bias}
    memory |= {"meanOut": unwritten([rows], dtype), "rstdTensor": unwritten([rows], dtype), "axis_size": ints(axis)}
    memory |= {"epsilon": floats(1e-5), "use_weight": ints(1), "use_bias": ints(1)}
    return Launch(memory, {"output": want, "meanOut": mean, "rstdTensor": rstd}, (rows * group, 1, 1), (group, 1, 1))


@family("rms_norm(_looped)?_TYPE")
def rms_norm(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, rows, axis = DTYPES[found[2]], 3, 250 if not found[1] else 300
    x, weight = shaped(dtype, rows, axis), shaped(dtype, axis)
    want = wide(x) / torch.sqrt((wide(x) ** 2).mean(1, keepdim=True) + 1e-5) * wide(weight)
    memory = {"x": x, "w": weight, "out": unwritten(x.shape, dtype), "eps": floats(1e-5), "axis_size": ints(axis), "w_stride": ints(1)}
    return Launch(memory, {"out": want}, (rows * 64, 1, 1), (64, 1, 1))


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, mask: torch.Tensor | None = None) -> torch.Tensor:
    scores = wide(q) @ wide(k).transpose(-1, -2) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, -1) @ wide(v)


@family(r"attention_TYPE_bq32_bk(\d+)_bd(\d+)_wm4_wn1")
def attention(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, block, width = DTYPES[found[1]], int(found[2]), int(found[3])
    heads, queries, keys, scale = 2, 40, 45, 0.3
    q, k, v = (shaped(dtype, 1, heads, n, width) for n in (queries, keys, keys))
    out = unwritten([1, heads, queries, width], dtype)

    def strides(n: int) -> torch.Tensor:
        return ints(heads * n * width, n * width, width, 0)

    memory = {"Q": q, "K": k, "V": v, "O": out, "qL": ints(queries), "kL": ints(keys), "gqa_factor": ints(1), "scale": floats(scale)}
    memory |= {"NK": ints(-(-keys // block)), "Q_strides": strides(queries), "K_strides": strides(keys), "V_strides": strides(keys)}
    memory["O_strides"] = strides(queries)
    blocks = -(-queries // 32)
    return Launch(memory, {"O": attended(q, k, v, scale)}, (32 * blocks, 4 * heads, 1), (32, 4, 1))


@family(r"sdpa_vector_TYPE_(\d+)_(\d+)")
def sdpa_vector(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, width, value = DTYPES[found[1]], int(found[2]), int(found[3])
    heads, queries, keys = 2, 3, 37
    q, k, v = shaped(dtype, heads, queries, width), shaped(dtype, heads, keys, width), shaped(dtype, heads, keys, value)
    mask = torch.arange(keys).expand(heads, queries, keys) % 5 != 1
    mask = mask.contiguous()
    memory: dict[str, object] = {"queries": q, "keys": k, "values": v, "out": unwritten([heads, queries, value], dtype)}
    memory |= {"gqa_factor": ints(1), "N": ints(keys), "scale": floats(0.3), "mask": mask, "has_mask": torch.tensor(True)}
    memory |= {"qkv_head_strides": ints(queries * width, keys * width, keys * value, 0), "qkv_seq_strides": ints(width, width, value, 0)}
    memory["mask_strides"] = ints(queries * keys, 1, keys, 0)
    return Launch(memory, {"out": attended(q, k, v, 0.3, mask)}, (heads * 1024, queries, 1), (1024, 1, 1))


PARTS = 32  # of the keys in attention of two passes; every 8 keys are the next one's


@family(r"sdpa_vector_2pass_1_TYPE_(\d+)_(\d+)")
def sdpa_first_pass(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, width, value = DTYPES[found[1]], int(found[2]), int(found[3])
    heads, queries, keys, shared, scale = 4, 2, 300, 2, 0.3
    q, k, v = (shaped(dtype, *shape) for shape in ((heads, queries, width), (heads // shared, keys, width), (heads // shared, keys, value)))
    part = torch.arange(keys) // 8 % PARTS
    # A part may have no key at all: its maximum is the kernel's own number for none.
    mask = ((torch.arange(keys) % 5 != 1) & (part != 3)).expand(heads, queries, keys).contiguous()
    mask[1, 0, :7] = False
    all_keys, all_values = (wide(t).repeat_interleave(shared, 0) for t in (k, v))
    scores = (wide(q) @ all_keys.mT * scale).masked_fill(~mask, -math.inf)
    scores = torch.where(part == torch.arange(PARTS).view(-1, 1), scores.unsqueeze(2), -math.inf)
    largest = scores.amax(-1).clamp(min=-1e9)
    weights = torch.exp(scores - largest.unsqueeze(-1))
    of_parts = [heads, queries, PARTS]
    memory: dict[str, object] = {"queries": q, "keys": k, "values": v, "out": unwritten([*of_parts, value], dtype)}
    memory |= {"sums": unwritten(of_parts, torch.float), "maxs": unwritten(of_parts, torch.float), "mask": mask, "has_mask": torch.tensor(True)}
    memory |= {"gqa_factor": ints(shared), "N": ints(keys), "scale": floats(scale), "mask_strides": ints(1, keys, queries * keys, 0)}
    memory |= {"qkv_head_strides": ints(queries * width, keys * width, keys * value, 0), "qkv_seq_strides": ints(width, width, value, 0)}
    want = {"out": weights @ all_values.unsqueeze(1), "sums": weights.sum(-1), "maxs": largest}
    return Launch(memory, want, (heads * 256, queries, PARTS), (256, 1, 1))


@family(r"sdpa_vector_2pass_2_TYPE_(\d+)")
def sdpa_second_pass(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, width, heads, queries = DTYPES[found[1]], int(found[2]), 2, 3
    partials, sums = shaped(dtype, heads, queries, PARTS, width), shaped(torch.float, heads, queries, PARTS, positive=True)
    largest = shaped(torch.float, heads, queries, PARTS)
    weights = torch.exp(largest.double()).unsqueeze(-1)
    want = (wide(partials) * weights).sum(2) / (sums.double().unsqueeze(-1) * weights).sum(2)
    memory = {"partials": partials, "sums": sums, "maxs": largest, "out": unwritten([heads, queries, width], dtype)}
    return Launch(memory, {"out": want}, (heads * 1024, queries, 1), (1024, 1, 1))


CHOLESKY = ["factorDiagonalBlock", "applyTRSM", "applySYRK"]  # the kernels of a block of columns, in their order


@family("(" + "|".join(CHOLESKY) + ")(U|L)")
def cholesky(kernel: Kernel, found: "re.Match[str]") -> Launch:
    """Cholesky decompositions in place, a block of columns at a time: of two matrices of two whole blocks and a smaller one."""
    which, batch, size, block = CHOLESKY.index(found[1]), 2, 77, 32
    step = 1 if which == 0 else 0
    x = shaped(torch.double, batch, size, size)
    given = x @ x.mT + size * torch.eye(size, dtype=torch.double)
    lower = torch.linalg.cholesky(given)
    done, rest = slice(step * block, (step + 1) * block), slice((step + 1) * block, size)
    known, row, column = lower[:, :, : done.start], torch.arange(size).view(-1, 1), torch.arange(size)
    given = given - known @ known.mT
    # What is above the diagonal is left alone.
    factored = torch.where((row < done.stop) & (column >= done.start) & (row >= column), lower, given)
    solved = factored.clone()
    solved[:, rest, done] = panel = lower[:, rest, done]
    # A whole block is computed by matrices of 8x8, and a part of some of them is above the diagonal.
    below = torch.where(row < 2 * block, row // 8 >= column // 8, row >= column)[rest, rest]
    updated = solved.clone()
    updated[:, rest, rest] -= torch.where(below, panel @ panel.mT, 0)
    # U has the rows one after another, L the columns.
    states = [t if found[2] == "U" else t.mT.contiguous() for t in (given, factored, solved, updated)]
    memory: dict[str, object] = {"A": states[which].float(), "N": longs(size), "NB": longs(block), "k": longs(step)}
    expected = {"A": states[which + 1]}
    if which == 0:
        memory["info"], expected["info"] = ints(0, 0), ints(0, 0)
    return Launch(memory, expected, (32 * batch, 8 * (which + 1), 1), (32, 8, 1))


@family("applyPivots")
def pivots(kernel: Kernel, found: "re.Match[str]") -> Launch:
    batch, rows, count = 2, 77, 50
    swapped = torch.stack([torch.tensor([i + i * step % (rows - i) for i in range(count)]) for step in (7, 5)]).int()
    want, _, _ = torch.lu_unpack(torch.zeros(batch, rows, count), swapped + 1)
    made = torch.eye(rows).repeat(batch, 1, 1)
    memory = {"P": made, "pivots": swapped, "R": ints(rows), "K": ints(count)}
    return Launch(memory, {"P": want}, (batch * 64, 1, 1), (64, 1, 1))


def picture(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return shaped(dtype, *shape)


def resized(kernel: Kernel, x: torch.Tensor, out: torch.Tensor, want: torch.Tensor, backward: bool = False) -> Launch:
    ratios = [a / b for a, b in zip(reversed(x.shape[2:]), reversed(out.shape[2:]), strict=True)]
    names = {a.name for a in kernel.arguments}
    memory: dict[str, object] = {"inputData": x, "outputData": out}
    if "params" in names:
        # UpsampleParams of ATen/native/mps/kernels/UpSample.h.
        words = torch.cat([longs(*t) for t in (x.stride(), x.shape, out.stride(), out.shape)])
        memory["params"] = torch.cat([words.view(torch.uint8), floats(*reversed(ratios)).view(torch.uint8), torch.zeros(4, dtype=torch.uint8)])
    else:
        def four(values: Sequence[int]) -> torch.Tensor:
            return longs(*values, *([0] * (4 - len(values))))

        memory |= {"input_strides": four(x.stride()), "output_strides": four(out.stride()), "input_sizes": four(x.shape)}
        memory |= {"output_sizes": four(out.shape), "scales": floats(*ratios, 0), "align_corners": torch.tensor(False)}
    key = "outputData"
    if backward:
        memory["gradInputData"], memory["gradOutputData"] = x, out
        key = "gradInputData"
    return Launch(memory, {key: want}, (math.prod(out.shape[2:]), 1, 1), (32, 1, 1))


@family("upsample_(linear1d|bilinear2d|bicubic2d|bilinear2d_aa|bicubic2d_aa|trilinear|nearest_3d|nearest_exact_3d)_TYPE")
def upsample(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype = DTYPES[found[2]]
    shape, size = {"l": ((2, 3, 9), [70]), "t": ((1, 2, 4, 5, 6), [6, 7, 9]), "n": ((1, 2, 4, 5, 6), [6, 7, 9])}.get(
        found[1][0], ((2, 3, 7, 8), [9, 11])
    )
    mode = {"linear1d": "linear", "trilinear": "trilinear", "nearest_3d": "nearest", "nearest_exact_3d": "nearest-exact"}.get(
        found[1], found[1][:8] if found[1].startswith("bilinear") else found[1][:7]
    )
    x = picture(dtype, *shape)
    smooth = None if mode.startswith("nearest") else False
    want = F.interpolate(x.double(), size=size, mode=mode, align_corners=smooth, antialias="_aa" in kernel.name)
    out = unwritten([*shape[:2], *size], dtype)
    made = resized(kernel, x, out, want if dtype.is_floating_point else want.round().to(dtype))
    if not dtype.is_floating_point and smooth is not None:
        made.tolerance = 1  # how it rounds is not said
    return made


@family("upsample_(bicubic2d|trilinear|nearest_3d|nearest_exact_3d)_backward_TYPE")
def upsample_backward(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype = DTYPES[found[2]]
    shape, size = ((2, 3, 7, 8), [9, 11]) if found[1] == "bicubic2d" else ((1, 2, 4, 5, 6), [6, 7, 9])
    mode = {"bicubic2d": "bicubic", "nearest_3d": "nearest", "nearest_exact_3d": "nearest-exact"}.get(found[1], found[1])
    x = torch.zeros(shape, dtype=torch.double, requires_grad=True)
    gradient = picture(dtype, *shape[:2], *size)
    smooth = None if mode.startswith("nearest") else False
    F.interpolate(x, size=size, mode=mode, align_corners=smooth).backward(gradient.double())
    assert x.grad is not None
    return resized(kernel, torch.zeros(shape, dtype=dtype), gradient, x.grad, True)


@family("searchsorted_TYPE_TYPE(_sorter)?")
def searchsorted(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, out = DTYPES[found[1]], DTYPES[found[2]]
    rows, wanted = shaped(dtype, 4, 33), shaped(dtype, 4, 40)
    order = torch.argsort(rows, dim=1, stable=True)
    ordered = torch.gather(rows, 1, order)
    want = torch.searchsorted(ordered.double(), wanted.double()).to(out)
    memory: dict[str, object] = {"data_in": wanted, "data_bd": rows if found[3] else ordered, "data_sort": order}
    memory |= {"idim_in": longs(40), "idim_bd": longs(33), "numel_in": longs(160), "right": longs(0), "is_1d_boundaries": longs(0)}
    memory["data_out"] = unwritten([4, 40], out)
    # One threadgroup is PyTorch's choice; a second one does the same once more.
    return Launch(memory, {"data_out": want}, (128, 1, 1))


@family("kernel_index_offset")
def index_offset(kernel: Kernel, found: "re.Match[str]") -> Launch:
    memory = {"strides": ints(4, 64), "data_offsets": unwritten([128], torch.int32), "iter_shape": ints(16, 8), "num_dimensions": ints(2)}
    i = torch.arange(128)
    return Launch(memory, {"data_offsets": (i % 8 * 64 + i // 8 * 4).int()})


@family("kernel_index_offsets_(32|64)")
def index_offsets(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype = BITS[found[1]]
    strides = torch.tensor([[4, 8, 12], [64, 128, 200]], dtype=torch.int32)
    out = unwritten([128, 4], dtype)
    i = torch.arange(128).view(-1, 1)
    want = torch.cat([i % 16 * strides[0] + i // 16 * strides[1], torch.full((128, 1), -1)], 1).to(dtype)
    memory = {"strides": strides, "data_offsets": out, "iter_shape": ints(16, 8), "num_dimensions": ints(2)}
    return Launch(memory, {"data_offsets": want})
