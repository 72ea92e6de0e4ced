"""Programs in the shapes that users' have: loops of training, changing shapes, copies that do not block, waits, and memory that comes
and goes. Each is a function that gives the values to compare."""

import copy
import io

import torch
from torch import nn

DEVICE = "mps"
SHAPES = {}


def program(function):
    SHAPES[function.__name__.replace("_", " ")] = function
    return function


def train(model, inputs, target, steps=3, each=lambda loss: loss.item(), optimizer=torch.optim.SGD):
    """Losses, as each loss is read, and the parameters after so many steps."""
    optimizer = optimizer(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(inputs) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(each(loss))
    return losses + [parameter.detach() for parameter in model.parameters()]


def mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(DEVICE)


@program
def training_with_item():
    return train(mlp(), torch.randn(8, 16, device=DEVICE), torch.randn(8, 4, device=DEVICE), steps=5)


@program
def training_without_reading():
    return train(mlp(), torch.randn(8, 16, device=DEVICE), torch.randn(8, 4, device=DEVICE), steps=8, each=lambda loss: loss.detach(), optimizer=torch.optim.Adam)


@program
def training_of_convolutions():
    model = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(96, 4)).to(DEVICE)
    return train(model, torch.randn(2, 3, 8, 8, device=DEVICE), torch.randn(2, 4, device=DEVICE))


@program
def training_of_a_transformer():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).to(DEVICE)
    return train(layer, torch.randn(2, 5, 16, device=DEVICE), torch.randn(2, 5, 16, device=DEVICE), steps=2)


@program
def training_with_dropout():
    model = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.3), nn.Linear(32, 4)).to(DEVICE)
    return train(model, torch.randn(8, 16, device=DEVICE), torch.randn(8, 4, device=DEVICE))


@program
def training_in_batches_from_the_cpu():
    model, data = mlp(), torch.utils.data.TensorDataset(torch.randn(24, 16), torch.randn(24, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for x, y in torch.utils.data.DataLoader(data, batch_size=8):
        loss = nn.functional.mse_loss(model(x.to(DEVICE, non_blocking=True)), y.to(DEVICE, non_blocking=True))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
    return losses + [parameter.detach() for parameter in model.parameters()]


@program
def recurrent_inference():
    model = nn.GRUCell(8, 8).to(DEVICE)
    state = torch.zeros(2, 8, device=DEVICE)
    with torch.no_grad():
        for step in torch.randn(6, 2, 8, device=DEVICE):
            state = model(step, state)
    return [state]


@program
def half_precision_inference():
    model = mlp().half()
    with torch.no_grad():
        return [model(torch.randn(4, 16, device=DEVICE, dtype=torch.half)) for _ in range(4)]


@program
def autocast():
    model = mlp()
    with torch.autocast(DEVICE, dtype=torch.float16):
        loss = model(torch.randn(4, 16, device=DEVICE)).float().sum()
    loss.backward()
    return [loss.detach()] + [parameter.grad for parameter in model.parameters()]


@program
def changing_lengths():
    """Text of many lengths: a graph for each, and back to those that were there."""
    model, results = mlp(), []
    with torch.no_grad():
        for length in (3, 5, 8, 3, 5, 13, 8, 3):
            results.append(torch.softmax(model(torch.randn(length, 16, device=DEVICE)), -1).sum())
    return results


@program
def more_shapes_than_the_bound():
    """More graphs than the patched cache keeps by default, and the first ones again."""
    x = torch.arange(640.0, device=DEVICE)
    return [torch.cumsum(x[:length], 0)[-1] for length in [*range(1, 600), *range(1, 40)]]


@program
def item_in_a_loop():
    x, seen = torch.zeros(4, device=DEVICE), []
    for number in range(12):
        x += number
        seen.append(x[0].item())
        if x.sum() > 1000:
            break
    return seen + [x]


@program
def uploads_that_do_not_block():
    sources = [torch.full((1 << 16,), float(number)) for number in range(12)]
    there = [source.to(DEVICE, non_blocking=True) for source in sources]
    total = sum(there)
    torch.mps.synchronize()
    return [total]


@program
def uploads_beyond_the_budget():
    """96 MB, of which the patched sources hold 64 at once."""
    source = torch.arange(1 << 20, dtype=torch.float32)
    total = torch.zeros(1 << 20, device=DEVICE)
    for _ in range(24):
        total += source.to(DEVICE, non_blocking=True)
    return [total.sum()]


@program
def upload_larger_than_the_budget():
    there = torch.full((18 << 20,), 2.0).to(DEVICE, non_blocking=True)
    return [there[-3:] + 1]


@program
def uploads_that_block():
    return [torch.randn(100).to(DEVICE) + torch.ones(1, device=DEVICE) for _ in range(10)]


@program
def uploads_of_views():
    source = torch.arange(64.0).view(8, 8)
    return [source.t().to(DEVICE), source[::2].to(DEVICE), source[:, 1:3].to(DEVICE), source.to(DEVICE, torch.half), source[1].to(DEVICE, torch.int32)]


@program
def downloads_that_do_not_block():
    there = torch.arange(1 << 12, device=DEVICE, dtype=torch.float32)
    here = [(there * number).to("cpu", non_blocking=True) for number in range(8)]
    torch.mps.synchronize()
    return here


@program
def downloads_of_views():
    there = torch.arange(64.0, device=DEVICE).view(8, 8)
    return [there.t().cpu(), there[2:].cpu(), there[:, ::2].cpu(), there.int().to("cpu", torch.double)]


@program
def casts_of_views_to_the_cpu():
    there = torch.arange(64.0, device=DEVICE).view(8, 8)
    return [there[1:].to("cpu", torch.half), there]


@program
def to_the_cpu_and_back():
    x = torch.randn(64, device=DEVICE)
    for _ in range(4):
        x = x.cpu().mul(0.5).to(DEVICE).exp()
    return [x]


@program
def memory_that_comes_and_goes():
    kept = []
    for step in range(12):
        large = torch.ones(1 << (14 + step % 8), device=DEVICE)
        kept.append(large.sum())
        if step % 4 == 3:
            torch.mps.empty_cache()
    return kept


@program
def memory_of_large_blocks():
    results = []
    for megabytes in (2, 12, 33, 12, 2, 33):
        block = torch.zeros(megabytes << 20, dtype=torch.uint8, device=DEVICE)
        results.append(block[:3].clone())
        del block
    torch.mps.empty_cache()
    return results


@program
def emptied_each_step():
    results = []
    for number in range(4):
        results.append(torch.matmul(torch.full((32, 32), float(number), device=DEVICE), torch.eye(32, device=DEVICE)).sum().item())
        torch.mps.synchronize()
        torch.mps.empty_cache()
    return results


@program
def out_of_memory():
    torch.mps.set_per_process_memory_fraction(0.05)
    kept = []
    try:
        for _ in range(200):
            kept.append(torch.zeros(32 << 20, dtype=torch.uint8, device=DEVICE))
    except RuntimeError as error:
        reason = str(error).split("(")[0]
    count = len(kept)
    kept.clear()
    torch.mps.empty_cache()
    return [count, reason, torch.ones(3, device=DEVICE) + 1]


@program
def events():
    first, last = torch.mps.Event(enable_timing=True), torch.mps.Event(enable_timing=True)
    first.record()
    x = torch.randn(64, 64, device=DEVICE) @ torch.eye(64, device=DEVICE)
    last.record()
    last.synchronize()
    assert first.query() and first.elapsed_time(last) >= 0
    torch.mps.synchronize()
    return [x]


@program
def random_numbers():
    torch.manual_seed(5)
    state = torch.mps.get_rng_state()
    first = torch.randn(5, device=DEVICE)
    torch.mps.set_rng_state(state)
    generator = torch.Generator(DEVICE).manual_seed(3)
    return [first, torch.randn(5, device=DEVICE), torch.rand(7, device=DEVICE, generator=generator), torch.randint(9, (6,), device=DEVICE), torch.randperm(8, device=DEVICE)]


@program
def in_place_and_indexing():
    x = torch.arange(40.0, device=DEVICE).view(5, 8)
    x[x > 20] = 0
    x[:, 2] += 1
    x.index_add_(0, torch.tensor([0, 2], device=DEVICE), torch.ones(2, 8, device=DEVICE))
    x.scatter_(1, torch.tensor([[1], [2]], device=DEVICE), 9.0)
    return [x, x.nonzero(), x[[0, 3]], x.unfold(1, 4, 2).sum(-1)]


@program
def views_and_strides():
    x = torch.arange(60.0, device=DEVICE)
    view = x.as_strided((4, 5), (7, 2), 3)
    return [view + 1, view.t().contiguous(), x.view(3, 4, 5).permute(2, 0, 1).flatten(), x[::3].exp()]


@program
def gradients_of_gradients():
    x = torch.linspace(0.1, 1, 6, device=DEVICE, requires_grad=True)
    (first,) = torch.autograd.grad(x.sin().prod(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    return [first.detach(), second]


@program
def hooks_and_accumulation():
    model, seen = mlp(), []
    model[0].weight.register_hook(lambda gradient: seen.append(gradient.sum()) or gradient * 2)
    for _ in range(3):
        model(torch.randn(4, 16, device=DEVICE)).sum().backward()
    return seen + [parameter.grad for parameter in model.parameters()]


@program
def checkpoints():
    model, x = mlp(), torch.randn(4, 16, device=DEVICE, requires_grad=True)
    torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
    return [x.grad]


@program
def saved_and_loaded():
    model, file = mlp(), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file, map_location=DEVICE)
    return list(copy.deepcopy(model).state_dict().values()) + list(loaded.values())


@program
def operators_that_raise():
    reasons = []
    for wrong in (lambda: torch.ones(2, 3, device=DEVICE) @ torch.ones(2, 3, device=DEVICE), lambda: torch.zeros(3, device=DEVICE, dtype=torch.float64),
                  lambda: torch.ones(3, device=DEVICE) + torch.ones(3, 4, device="cpu")):  # fmt: skip
        try:
            wrong()
        except (RuntimeError, TypeError) as error:
            reasons.append(f"{type(error).__name__}: {error}")
    return reasons + [torch.ones(3, device=DEVICE) * 2]


@program
def numbers_of_one_element():
    x, total = torch.arange(8.0, device=DEVICE), 0.0
    for number in range(8):
        total += float(x[number]) + int(x.argmax()) + bool(x.any())
    return [total, x.mean().item(), x.tolist()]


@program
def many_small_tensors():
    tensors = [torch.full((3,), float(number), device=DEVICE) for number in range(60)]
    torch._foreach_mul_(tensors, 2.0)
    return [torch.stack(tensors), torch.cat(tensors).sum()]


@program
def default_device():
    with torch.device(DEVICE):
        model = nn.Linear(4, 4)
        return [model(torch.ones(2, 4)).detach(), torch.arange(3)]


@program
def sparse_and_sorted():
    x = torch.tensor([3.0, 1.0, 2.0, 1.0], device=DEVICE)
    return [*x.sort(), *x.topk(2), x.unique(), torch.where(x > 1, x, -x), x.cumsum(0)]
