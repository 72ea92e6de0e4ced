"""More families: pools, foldings, optimizers, packed weights, indices and sparse tensors."""

import re
from collections.abc import Sequence

import torch
from families import BITS, family, floats, ints, longs, shaped, wide
from iterators import GENERATOR, numbers
from launch import DTYPES, Kernel, Launch, unwritten

F = torch.nn.functional


def packed(*values: object) -> torch.Tensor:
    """Bytes of a struct of C: whole numbers of 4 bytes, and truth values of 1, which are at its end."""
    made = bytearray()
    for value in values:
        if isinstance(value, bool):
            made += bytes([value])
            continue
        for number in value if isinstance(value, Sequence) else [value]:
            assert isinstance(number, int)
            made += bytes(-len(made) % 4) + number.to_bytes(4, "little", signed=True)
    return torch.tensor(list(made + bytes(-len(made) % 4)), dtype=torch.uint8)


def five(values: Sequence[int]) -> list[int]:
    return [*values, *([0] * (5 - len(values)))]


def of(*tensors: torch.Tensor) -> list[list[int]]:
    """Sizes and strides of each, as parameters of pools have them."""
    return [five(values) for tensor in tensors for values in (tensor.shape, tensor.stride())]


KERNEL, STRIDE, PADDING = (3, 2), (2, 1), (1, 0)
POOLED = [[*values, 0] for values in (KERNEL, STRIDE, PADDING)]


@family("max_pool_TYPE")
def max_pool(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = shaped(DTYPES[found[1]], 2, 3, 10, 11)
    want, places = F.max_pool2d(x.double(), KERNEL, STRIDE, PADDING, return_indices=True)
    out, indices = unwritten(want.shape, x.dtype), unwritten(want.shape, torch.int64)
    parameters = packed(4, 2, *of(x, out, indices), *POOLED, [1, 1, 0], True)
    expected = {"output": want.to(x.dtype), "indices": places}
    return Launch({"input": x, "output": out, "indices": indices, "params": parameters}, expected, (want.numel(), 1, 1))


@family("max_pool_backward_TYPE")
def max_pool_backward(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = torch.rand(2, 3, 10, 11, dtype=torch.double, requires_grad=True)
    out, places = F.max_pool2d(x, KERNEL, STRIDE, PADDING, return_indices=True)
    gradient = shaped(DTYPES[found[1]], *out.shape)
    out.backward(gradient.double())
    assert x.grad is not None
    made = torch.zeros(x.shape, dtype=gradient.dtype)
    parameters = packed(4, 2, *of(made, gradient), five(places.stride()))
    memory = {"grad_input": made, "grad_output": gradient, "indices": places, "params": parameters}
    return Launch(memory, {"grad_input": x.grad}, (gradient.numel(), 1, 1))


@family("max_unpool_TYPE")
def max_unpool(kernel: Kernel, found: "re.Match[str]") -> Launch:
    _, places = F.max_pool2d(torch.rand(2, 3, 10, 12), 2, return_indices=True)
    x = shaped(DTYPES[found[1]], *places.shape)
    out = torch.zeros(2, 3, 10, 12, dtype=x.dtype)
    want = F.max_unpool2d(x.double(), places, 2).to(x.dtype)
    parameters = packed(4, 2, *of(x, out), five(places.stride()))
    return Launch({"output": out, "input": x, "indices": places, "params": parameters}, {"output": want}, (x.numel(), 1, 1))


@family("avg_pool_TYPE")
def avg_pool(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = shaped(DTYPES[found[1]], 2, 3, 10, 11)
    want = F.avg_pool2d(x.double(), KERNEL, STRIDE, PADDING, divisor_override=5)
    if not x.is_floating_point():
        want = want != 0 if x.dtype == torch.bool else want.trunc().to(x.dtype)
    out = unwritten(want.shape, x.dtype)
    parameters = packed(4, 2, *of(x, out), *POOLED, True, True, 5)
    return Launch({"input": x, "output": out, "params": parameters}, {"output": want}, (want.numel(), 1, 1))


@family("avg_pool_backward_TYPE")
def avg_pool_backward(kernel: Kernel, found: "re.Match[str]") -> Launch:
    # PyTorch launches it for pools of three dimensions alone.
    window, steps, padding = (2, 3, 2), (2, 1, 2), (1, 0, 1)
    x = torch.zeros(2, 3, 4, 6, 7, dtype=torch.double, requires_grad=True)
    out = F.avg_pool3d(x, window, steps, padding)
    gradient = shaped(DTYPES[found[1]], *out.shape)
    out.backward(gradient.double())
    assert x.grad is not None
    made = torch.zeros(x.shape, dtype=gradient.dtype)
    parameters = packed(5, 3, *of(made, gradient), window, steps, padding, True, False, 0)
    return Launch({"grad_input": made, "grad_output": gradient, "params": parameters}, {"grad_input": x.grad}, (gradient.numel(), 1, 1))


@family("im2col_TYPE")
def im2col(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = shaped(DTYPES[found[1]], 2, 3, 7, 16)
    source = wide(x) if x.dtype != torch.bool else x.double()
    want = F.unfold(source, (3, 2), padding=(1, 0), stride=(1, 2))
    out = unwritten(want.shape, x.dtype)
    columns = 8
    memory: dict[str, object] = {"inputData": x, "outputData": out, "kernel_dilation": ints(2, 3, 1, 1)}
    memory |= {"padding_stride": ints(0, 1, 2, 1), "input_strides": longs(*reversed(x.stride())), "input_sizes": longs(16, 7, 3, 2)}
    memory["output_strides"] = longs(1, want.shape[2], want.shape[1] * want.shape[2], columns)
    want = want != 0 if x.dtype == torch.bool else want
    return Launch(memory, {"outputData": want}, (want.shape[2], 3, 2), (8, 3, 1))


@family("col2im_kernel_TYPE")
def col2im(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, batch, channels, size = DTYPES[found[1]], 2, 3, (9, 7)
    window, padding, step, dilation = (3, 2), (1, 0), (2, 1), (1, 2)
    rows, columns = ((n + 2 * p - d * (w - 1) - 1) // s + 1 for n, w, p, s, d in zip(size, window, padding, step, dilation, strict=True))
    x = shaped(dtype, batch, channels * window[0] * window[1], rows * columns)
    want = F.fold(x.double(), size, window, dilation, padding, step)
    memory = {"data_col": x, "data_im": unwritten(want.shape, dtype), "channels": ints(channels), "im_hw": ints(*size)}
    memory |= {"kernel_hw": ints(*window), "pad_hw": ints(*padding), "stride_hw": ints(*step), "dilation_hw": ints(*dilation)}
    memory |= {"col_hw": ints(rows, columns), "col_batch_stride": ints(x.stride(0)), "im_batch_stride": ints(want.stride(0))}
    want = want != 0 if dtype == torch.bool else want
    return Launch(memory, {"data_im": want}, (size[1], size[0], batch * channels), (7, 9, 1))


@family("grid_sampler_TYPE")
def grid_sampler(kernel: Kernel, found: "re.Match[str]") -> Launch:
    # PyTorch launches it for inputs of three dimensions alone.
    x, grid = shaped(DTYPES[found[1]], 2, 3, 4, 5, 6), shaped(DTYPES[found[1]], 2, 3, 4, 7, 3)
    want = F.grid_sample(x.double(), grid.double(), "bilinear", "zeros", align_corners=False)
    out = unwritten(want.shape, x.dtype)
    parameters = packed(3, *of(out, x, grid), 0, 0, False)  # bilinear, padded with zeros
    memory = {"output": out, "input": x, "grid": grid, "params": parameters}
    return Launch(memory, {"output": want}, (want.numel(), 1, 1))


@family("unfold_backward_TYPE")
def unfold_backward(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = torch.zeros(8, 20, dtype=torch.double, requires_grad=True)
    unfolded = x.unfold(1, 5, 2)
    gradient = shaped(DTYPES[found[1]], *unfolded.shape)
    unfolded.backward(gradient.double())
    assert x.grad is not None
    memory = {"grad_in": gradient, "grad_out": unwritten(x.shape, gradient.dtype), "input_strides": longs(*gradient.stride())}
    memory |= {"output_sizes": longs(*x.shape), "output_strides": longs(*x.stride()), "dim_size_step_ndim": ints(1, 5, 2, 2)}
    return Launch(memory, {"grad_out": x.grad}, (x.numel(), 1, 1), (32, 1, 1))


@family("histogramdd_TYPE")
def histogram(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, bins = DTYPES[found[1]], 10
    x, weight = numbers(128, dtype, True), numbers(128, dtype, True)
    edges = torch.linspace(0, 4, bins + 1).to(dtype)
    want = F.one_hot((torch.bucketize(x, edges, right=True) - 1).clamp(0, bins - 1), bins) * weight.double().view(-1, 1)
    memory: dict[str, object] = {"input_": x, "weight": weight, "local_out": torch.zeros(128, bins, dtype=dtype), "bin_seq": edges}
    memory |= {"offsets": torch.arange(128, dtype=torch.int32), "num_dims": longs(1), "num_bin_edges": longs(bins + 1)}
    memory |= {"leftmost_edge": edges[:1].clone(), "rightmost_edge": edges[-1:].clone(), "local_out_strides": longs(bins, 1)}
    memory |= {"algorithm": torch.tensor(2, dtype=torch.uint8), "has_weight": torch.tensor(1, dtype=torch.uint8)}
    return Launch(memory, {"local_out": want})


def pointers(*lists: Sequence[torch.Tensor]) -> torch.Tensor:
    """Arrays of 32 addresses, of which the first ones are used."""
    return longs(*(address for tensors in lists for address in [*(t.data_ptr() for t in tensors), *([0] * (32 - len(tensors)))]))


METADATA = longs(*[150, 100], *[0] * 30, *[0, 1], *[0] * 30, *[0] * 32)  # two tensors, each of one threadgroup
SIZES = (150, 100)


@family("fused_(adamw?)(_amsgrad)?_TYPE_TYPE")
def fused_adam(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, step = DTYPES[found[3]], [torch.tensor(4.0).to(DTYPES[found[4]]) for _ in SIZES]
    lr, beta1, beta2, decay, eps = 0.1, 0.875, 0.75, 0.25, 0.5
    p, g, m = ([numbers(n, dtype, False) for n in SIZES] for _ in range(3))
    v, largest = ([numbers(n, dtype, True) for n in SIZES] for _ in range(2))
    lists = [p, g, m, v] + ([largest] if found[2] else [])
    expected: dict[str, torch.Tensor] = {}
    for i in range(2):
        param, grad, mean, square = (wide(t[i]) for t in (p, g, m, v))
        if found[1] == "adam":
            grad = grad + decay * param
        else:
            param = param * (1 - lr * decay)
        mean, square = beta1 * mean + (1 - beta1) * grad, beta2 * square + (1 - beta2) * grad**2
        bound = torch.maximum(wide(largest[i]), square) if found[2] else square
        below = torch.sqrt(bound) / (1 - beta2**4) ** 0.5 + eps
        expected[f"param {i}"] = param - lr / (1 - beta1**4) * mean / below
        expected |= {f"mean {i}": mean, f"square {i}": square}
    memory: dict[str, object] = {"args": pointers(*lists, step), "metadata_args": METADATA, "lr": floats(lr), "beta1": floats(beta1)}
    memory |= {"beta2": floats(beta2), "weight_decay": floats(decay), "eps": floats(eps), "maximize": torch.tensor(False)}
    for i in range(2):
        memory |= {f"param {i}": p[i], f"mean {i}": m[i], f"square {i}": v[i]}
    return Launch(memory, expected, tolerance=wide_tolerance(dtype), reached=[t for each in [*lists, step] for t in each])


def wide_tolerance(dtype: torch.dtype) -> float:
    """Some steps of a kernel are in its own type."""
    return {torch.half: 1e-2, torch.bfloat16: 6e-2}.get(dtype, 1e-4)


@family("fused_sgd(_momentum)?_TYPE")
def fused_sgd(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, lr, decay, momentum, damped = DTYPES[found[2]], 0.1, 0.25, 0.75, 0.125
    p, g, buffers = ([numbers(n, dtype, False) for n in SIZES] for _ in range(3))
    lists = [p, g, buffers] if found[1] else [p, g]
    memory: dict[str, object] = {"args": pointers(*lists), "metadata_args": METADATA, "weight_decay": floats(decay), "lr": floats(lr)}
    memory |= {"momentum": floats(momentum), "dampening": floats(damped), "nesterov": torch.tensor(True)}
    memory |= {"maximize": torch.tensor(False), "is_first_step": torch.tensor(False)}
    expected: dict[str, torch.Tensor] = {}
    for i in range(2):
        step = wide(g[i]) + decay * wide(p[i])
        if found[1]:
            expected[f"buffer {i}"] = momentum * wide(buffers[i]) + (1 - damped) * step
            step = step + momentum * expected[f"buffer {i}"]
        expected[f"param {i}"] = wide(p[i]) - lr * step
        memory |= {f"param {i}": p[i], f"buffer {i}": buffers[i]}
    return Launch(memory, expected, tolerance=wide_tolerance(dtype), reached=[t for each in lists for t in each])


@family("ampNonFiniteCheckAndUnscale(Single)?_TYPE")
def unscale(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype = DTYPES[found[2]]
    data = [numbers(n, dtype, False) for n in (SIZES if not found[1] else (128,))]
    data[0][7] = torch.inf
    memory: dict[str, object] = {"foundInf": floats(0), "invScale": torch.tensor(0.5).to(dtype), "metadata": METADATA}
    memory |= {"pointerArgs": pointers(data), "data": data[0], **{f"data {i}": t for i, t in enumerate(data)}}
    expected = {"foundInf": floats(1), **{f"data {i}": wide(t) / 2 for i, t in enumerate(data)}}
    return Launch(memory, expected, reached=data)


@family("ampUpdateScale_TYPE")
def update_scale(kernel: Kernel, found: "re.Match[str]") -> Launch:
    # PyTorch runs one thread; here each of 128 does a step, one after another, and every 64th one grows the scale.
    dtype = DTYPES[found[1]]
    memory = {"scale": torch.tensor(4.0).to(dtype), "growth_tracker": ints(0), "foundInf": floats(0), "growthInterval": ints(64)}
    memory |= {"scaleGrowthFactor": torch.tensor(2.0).to(dtype), "scaleBackoffFactor": torch.tensor(0.5).to(dtype)}
    return Launch(memory, {"scale": torch.tensor(16.0), "growth_tracker": ints(0)})


@family("weight_to_int4pack")
def int4pack(kernel: Kernel, found: "re.Match[str]") -> Launch:
    w = torch.randint(0, 256, (16, 8, 4), dtype=torch.uint8)
    want = (w << 4) | (w >> 4)
    memory = {"W": w, "outputData": unwritten(w.shape, torch.uint8), "sizes": ints(16, 8)}
    return Launch(memory, {"outputData": want}, (16, 8, 1), (8, 8, 1))


@family(r"int4pack_mm_(\d+)_TYPE")
def int4pack_mm(kernel: Kernel, found: "re.Match[str]") -> Launch:
    size, dtype, m, k, n = int(found[1]), DTYPES[found[2]], 3, 512, 16
    a, nibbles = shaped(dtype, m, k), torch.randint(0, 16, (n, k), generator=GENERATOR)
    scale_and_zero = shaped(dtype, k // size, n, 2)
    scale, zero = (wide(t).t().repeat_interleave(size, 1) for t in scale_and_zero.unbind(2))
    want = wide(a) @ ((nibbles - 8) * scale + zero).t()
    b = (nibbles[:, ::2] | nibbles[:, 1::2] << 4).to(torch.uint8)
    memory = {"A": a, "B": b, "scales_and_zeros": scale_and_zero, "output_data": unwritten([m, n], dtype), "sizes": ints(m, k, n, 0)}
    return Launch(memory, {"output_data": want}, (n // 4 * 32, 1, m), (64, 1, 1), 4 * wide_tolerance(dtype))


@family(r"int8pack_mv_TYPE")
def int8pack_mv(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, k, n = DTYPES[found[1]], 64, 16
    a, b, scale = shaped(dtype, 1, k), torch.randint(-9, 9, (n, k), dtype=torch.int8), shaped(dtype, n, positive=True)
    memory = {"A": a, "B": b, "scalesAndZeros": scale, "outputData": unwritten([1, n], dtype), "sizes": ints(1, k, n, 0)}
    memory["shared_memory"] = unwritten([32], torch.uint8)
    want = wide(a) @ b.double().t() * wide(scale)
    return Launch(memory, {"outputData": want}, (n // 8 * 64, 1, 1), (64, 1, 1))


@family("large_m_int8pack_mm_TYPE")
def int8pack_mm(kernel: Kernel, found: "re.Match[str]") -> Launch:
    dtype, m, k, n = DTYPES[found[1]], 40, 64, 64
    a, b, scale = shaped(dtype, m, k), torch.randint(-9, 9, (n, k), dtype=torch.int8), shaped(dtype, n, positive=True)
    memory = {"A": a, "B": b, "scalesAndZeros": scale, "outputData": unwritten([m, n], dtype), "sizes": ints(m, k, n, 0)}
    memory["shared_memory"] = unwritten([12288], torch.uint8)
    want = wide(a) @ b.double().t() * wide(scale)
    return Launch(memory, {"outputData": want}, (2 * 128, 1, 1), (128, 1, 1), 4 * wide_tolerance(dtype))


INDEXED = (12, 6)  # a whole number of words, as atomic operations need


def index_memory(x: torch.Tensor, out: torch.Tensor, out_strides: torch.Tensor, in_strides: torch.Tensor, at: torch.Tensor) -> dict[str, object]:
    """Over 6 columns and the rows that at names; strides are bytes, from the innermost dimension outwards."""
    width = x.element_size()
    memory: dict[str, object] = {"output": out, "input": x, "indices": longs(at.data_ptr()), "sizes": longs(6, at.numel())}
    memory |= {"output_strides": out_strides * width, "input_strides": in_strides * width, "indices_strides": longs(0, 8)}
    memory |= {"index_sizes": longs(12), "index_strides": longs(6 * width), "ndim_nindices_numel": ints(2, 1, 6 * at.numel(), 0)}
    return memory


@family("index_select_(8|16|32|64)bit")
def index_select(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x, at = shaped(BITS[found[1]], *INDEXED), torch.arange(20) * 7 % 18 - 9
    memory = index_memory(x, unwritten([20, 6], x.dtype), longs(1, 6), longs(1, 0), at)
    return Launch(memory, {"output": x[at]}, (120, 1, 1), (64, 1, 1), reached=[at])


@family("index_put_(?:(serial)_)?(8|16|32|64)bit")
def index_put(kernel: Kernel, found: "re.Match[str]") -> Launch:
    values, at = shaped(BITS[found[2]], 11, 6), torch.arange(11) * 3 % 11 - 11
    out = shaped(values.dtype, *INDEXED)
    want = out.clone()
    want[at] = values
    memory = index_memory(values, out, longs(1, 0), longs(1, 6), at)
    # Each thread of the serial one does everything.
    return Launch(memory, {"output": want}, (64 if found[1] else 66, 1, 1), (32, 1, 1), reached=[at])


@family("index_put_accumulate_TYPE")
def index_put_accumulate(kernel: Kernel, found: "re.Match[str]") -> Launch:
    values, at = shaped(DTYPES[found[1]], 20, 6), torch.arange(20) * 7 % 18 - 9
    out = shaped(values.dtype, *INDEXED)
    want = wide(out).clone() if out.dtype != torch.bool else out.long()
    want.index_put_((at,), wide(values) if values.dtype != torch.bool else values.long(), accumulate=True)
    want = want != 0 if out.dtype == torch.bool else want
    memory = index_memory(values, out, longs(1, 0), longs(1, 6), at)
    return Launch(memory, {"output": want}, (120, 1, 1), (64, 1, 1), 2 * wide_tolerance(out.dtype) if out.dtype.is_floating_point else None, [at])


@family("kogge_stone_step")
def kogge_stone(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = torch.arange(128, dtype=torch.int32) % 7
    want = x.clone()
    want[4:] += x[:-4]
    return Launch({"input": x, "output": unwritten([128], torch.int32), "stride": ints(4)}, {"output": want})


@family("shift_right_kernel")
def shift_right(kernel: Kernel, found: "re.Match[str]") -> Launch:
    x = torch.arange(128, dtype=torch.int32) + 5
    want = torch.cat([ints(0), x[:-1]])
    return Launch({"input": x, "output": unwritten([128], torch.int32)}, {"output": want})


def repeated() -> tuple[torch.Tensor, torch.Tensor]:
    """Sorted numbers, most of them more than once; and where a new one begins."""
    flat = torch.cat([torch.arange(128) // 3, torch.arange(64) * 2 + 43])
    return flat, torch.cat([torch.tensor([True]), flat[1:] != flat[:-1]])


@family("compute_output_positions_kernel")
def output_positions(kernel: Kernel, found: "re.Match[str]") -> Launch:
    flat, first = repeated()
    want = first.cumsum(0).int() - first.int()
    return Launch({"is_unique": first, "positions": unwritten(flat.shape, torch.int32)}, {"positions": want}, (flat.numel(), 1, 1))


@family("mark_unique_positions_and_count_kernel")
def mark_unique(kernel: Kernel, found: "re.Match[str]") -> Launch:
    flat, first = repeated()
    memory = {"flat_indices": flat, "is_unique": torch.zeros_like(first), "count": ints(0)}
    return Launch(memory, {"is_unique": first, "count": ints(flat.unique().numel())}, (flat.numel(), 1, 1))


@family("coalesce_with_positions_kernel_TYPE")
def coalesce(kernel: Kernel, found: "re.Match[str]") -> Launch:
    flat, first = repeated()
    indices, values = torch.stack([flat // 20, flat % 20]), shaped(DTYPES[found[1]], flat.numel(), 3)
    kept, place = flat.unique(return_inverse=True)
    sums = torch.zeros(kept.numel(), 3, dtype=torch.long if values.dtype == torch.bool else wide(values).dtype)
    sums.index_add_(0, place, wide(values).to(sums.dtype))
    want = sums != 0 if values.dtype == torch.bool else sums
    memory: dict[str, object] = {"flat_indices": flat, "indices": indices, "in_values": values, "is_unique": first}
    memory |= {"output_positions": place.int(), "out_indices": unwritten([2, kept.numel()], torch.int64)}
    memory |= {"out_values": unwritten(want.shape, values.dtype), "nnz": ints(flat.numel()), "value_size": ints(3)}
    memory |= {"sparse_dim": longs(2), "total_unique": ints(kept.numel())}
    expected = {"out_indices": torch.stack([kept // 20, kept % 20]), "out_values": want}
    return Launch(memory, expected, (flat.numel(), 1, 1))


@family("flatten_indices_kernel")
def flatten_indices(kernel: Kernel, found: "re.Match[str]") -> Launch:
    size = (5, 6, 7)
    want = torch.arange(128) * 11 % (5 * 6 * 7)
    # One index after another, so that the strides are not those of a contiguous tensor.
    indices = torch.stack(torch.unravel_index(want, size), 1)
    memory = {"indices": indices, "row_muls": longs(42, 7, 1), "flat_indices": unwritten([128], torch.int64)}
    memory |= {"sparse_dim": ints(3), "idx_strides": longs(1, 3)}
    return Launch(memory, {"flat_indices": want})
