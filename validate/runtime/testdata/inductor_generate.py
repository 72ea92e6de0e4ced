"""Has Inductor generate Metal code for models, on Linux, and writes it with the values that it must compute.

Runs under torch 2.9.1 from PyPI and transformers, which need no Metal. torch.compile traces each model on the CPU; its
graphs are moved to device mps, which needs no device, because Inductor looks at shapes and types only. The same graphs
run on the CPU, and give the values; the whole is compared with the model in eager mode.

inductor_generate.py OUT writes a file for torch.load: a list of graphs, each a dictionary with the model's name, "forward" or
"backward", Inductor's Python code, the Metal sources in it with c10's headers put in, inputs, and outputs.
"""

from __future__ import annotations

import copy
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

import torch
import torch._inductor.graph as lowering
from torch._inductor import config
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._cpp_embed_headers import _embed_headers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    ResNetConfig,
    ResNetForImageClassification,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
)

MPS = torch.device("mps")
graphs: list[dict[str, Any]] = []
written: list[str] = []
model_name = ""


def models() -> dict[str, tuple[torch.nn.Module, dict[str, torch.Tensor]]]:
    """Small models from their configurations, with random weights and without dropout, and arguments that give a loss."""

    def text(length: int) -> torch.Tensor:
        return torch.randint(3, 64, (2, length))

    words = text(12)
    eager = {"attn_implementation": "eager"}
    bert = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **eager,
    )  # fmt: skip
    gpt2 = GPT2Config(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
        use_cache=False, **eager,
    )  # fmt: skip
    llama = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, use_cache=False, **eager,
    )  # fmt: skip
    t5 = T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0, use_cache=False,
        decoder_start_token_id=0,
    )  # fmt: skip
    vit = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **eager,
    )  # fmt: skip
    resnet = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    classes, picture = torch.tensor([0, 1]), torch.randn(2, 3, 16, 16)
    return {
        "BERT": (BertForSequenceClassification(bert), {"input_ids": words, "labels": classes}),
        "GPT-2": (GPT2LMHeadModel(gpt2), {"input_ids": words, "labels": words}),
        "Llama": (LlamaForCausalLM(llama), {"input_ids": words, "labels": words}),
        "T5": (T5ForConditionalGeneration(t5), {"input_ids": words, "labels": text(8)}),
        "ViT": (ViTForImageClassification(vit), {"pixel_values": picture, "labels": classes}),
        "ResNet": (ResNetForImageClassification(resnet), {"pixel_values": picture, "labels": classes}),
    }


def move(graph: torch.fx.GraphModule, device: torch.device) -> None:
    """Changes the device that nodes of the graph ask for."""
    for node in graph.graph.nodes:
        if isinstance(node.kwargs.get("device"), torch.device):
            node.kwargs = {**node.kwargs, "device": device}
        node.args = tuple(device if isinstance(a, torch.device) else a for a in node.args)
    graph.recompile()


def shaders(code: str) -> dict[str, str]:
    """The Metal sources in Inductor's code, as they are and with headers put in, as torch.mps.compile_shader does."""
    include = Path(torch.__file__).parent / "include"
    sources = re.findall(r"compile_mps_shader\('''(.*?)'''\)", code, re.S)
    return {s: _embed_headers([line + "\n" for line in s.split("\n")], [include], set()) for s in sources}


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, gaps included."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(tensor.detach())


def compile_graph(graph: torch.fx.GraphModule, example: list[torch.Tensor], **options: Any) -> Callable[..., Any]:
    """Inductor's inner compiler: writes the code for mps, and returns what runs the graph on the CPU and keeps its values."""
    there = copy.deepcopy(graph)
    move(there, MPS)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        inputs = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=MPS) for t in example]
    FakeTensorProp(there, mode).propagate_dont_convert_inputs(*inputs)
    with V.set_fake_mode(mode), torch._guards.tracing(torch._guards.TracingContext(mode)):
        compile_fx_inner(there, inputs, **options)
    code = written.pop()
    backward = bool(options.get("is_backward"))

    def run(arguments: list[torch.Tensor]) -> Any:
        given = [copy_of(a) for a in arguments]
        values = graph(*arguments)
        arguments.clear()
        graphs.append(
            {
                "model": model_name,
                "pass": "backward" if backward else "forward",
                "code": code,
                "shaders": shaders(code),
                "inputs": given,
                "outputs": [None if v is None else copy_of(v) for v in values],
            }
        )
        return values

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def add_guard() -> None:
    """Builds and loads inductor_guard.cc."""
    root = Path(torch.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "guard.so"
        source = Path(__file__).with_name("inductor_guard.cc")
        options = ["-std=c++17", "-shared", "-fPIC", f"-I{root}/include", f"-L{root}/lib", "-lc10"]
        subprocess.run(["c++", str(source), "-o", str(library), *options], check=True)
        torch.ops.load_library(library)


def keep_code() -> None:
    """What Inductor writes goes to the list `written`; nothing is run of it."""
    generate = lowering.GraphLowering.codegen

    def codegen(self: lowering.GraphLowering) -> Any:
        result = generate(self)
        written.append(result[0].value)
        return result

    lowering.GraphLowering.codegen = codegen  # type: ignore[method-assign]
    torch.mps.compile_shader = lambda source: None  # type: ignore[assignment]
    torch.backends.mps.get_core_count = lambda: 8  # the GPU of an M1: Inductor splits reductions by it
    config.fx_graph_cache = False
    config.compile_threads = 1


def main() -> None:
    global model_name
    add_guard()
    keep_code()
    torch.manual_seed(0)
    for model_name, (model, arguments) in models().items():
        loss = model(**arguments).loss
        loss.backward()
        want = [loss.detach()] + [p.grad for p in model.parameters() if p.grad is not None]
        model.zero_grad()
        compiled = torch.compile(
            model, backend=lambda g, e: compile_fx(g, e, inner_compile=compile_graph), dynamic=False
        )
        with sdpa_kernel(SDPBackend.MATH):  # the CPU's own kernel has no counterpart on mps
            loss = compiled(**arguments).loss
            loss.backward()
        got = [loss.detach()] + [p.grad for p in model.parameters() if p.grad is not None]
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    torch.save(graphs, sys.argv[1])


if __name__ == "__main__":
    main()
