"""Compiles six models with torch.compile on device mps, and compares their values and gradients, by four threads at once, with the CPU's.

Prints one JSON object: for each model how many graphs were compiled for either pass, how many Metal sources, how often
the threads ran a graph, and how many values were compared; what was wrong; and what the software Metal found.

inductor.py MODEL FROM TO does so for one model, with a fault planted: TO in place of FROM in its Metal sources.
"""

from __future__ import annotations

import copy
import functools
import json
import sys
import threading
from typing import Any, Callable

import torch
from findings import findings
from torch._inductor import config
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._inductor.utils import fresh_cache
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

THREADS, ROUNDS = 4, 3
Arguments = dict[str, torch.Tensor]
report: dict[str, Any] = {"models": {}, "wrong": []}


def models() -> dict[str, tuple[torch.nn.Module, Callable[[], Arguments]]]:
    """Small models from their configurations, with random weights and without dropout, and what makes random arguments."""

    def text(length: int) -> torch.Tensor:
        return torch.randint(3, 64, (2, length))

    def classes() -> torch.Tensor:
        return torch.randint(0, 2, (2,))

    def continued() -> Arguments:
        words = text(12)
        return {"input_ids": words, "labels": words}

    def shown() -> Arguments:
        return {"pixel_values": torch.randn(2, 3, 16, 16), "labels": classes()}

    bert = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    gpt2 = GPT2Config(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
        use_cache=False,
    )  # fmt: skip
    llama = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, use_cache=False,
    )  # fmt: skip
    t5 = T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0, use_cache=False,
        decoder_start_token_id=0,
    )  # fmt: skip
    vit = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    resnet = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    return {
        "BERT": (BertForSequenceClassification(bert), lambda: {"input_ids": text(12), "labels": classes()}),
        "GPT-2": (GPT2LMHeadModel(gpt2), continued),
        "Llama": (LlamaForCausalLM(llama), continued),
        "T5": (T5ForConditionalGeneration(t5), lambda: {"input_ids": text(12), "labels": text(8)}),
        "ViT": (ViTForImageClassification(vit), shown),
        "ResNet": (ResNetForImageClassification(resnet), shown),
    }


def train(model: Callable[..., Any], parameters: list[torch.Tensor], arguments: Arguments) -> list[torch.Tensor]:
    """The loss, the output and the gradients; those are not added to .grad, which threads would share."""
    result = model(**arguments)
    gradients = torch.autograd.grad(result.loss, parameters, allow_unused=True)
    return [result.loss.detach(), result.logits.detach(), *(g for g in gradients if g is not None)]


def compile_graph(passes: dict[str, list[int]], graph: Any, example: Any, **options: Any) -> Callable[..., Any]:
    """Inductor's own compiler of a graph, which counts the runs of what it gives."""
    compiled = compile_fx_inner(graph, example, **options)
    runs = passes["backward" if options.get("is_backward") else "forward"]
    place = len(runs)
    runs.append(0)
    counting = threading.Lock()

    def run(arguments: list[Any]) -> Any:
        with counting:
            runs[place] += 1
        return compiled(arguments)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def check(name: str, model: torch.nn.Module, make: Callable[[], Arguments]) -> None:
    given = [make() for _ in range(THREADS)]
    want = [train(model, list(model.parameters()), arguments) for arguments in given]
    there = copy.deepcopy(model).to("mps")
    parameters = list(there.parameters())
    passes: dict[str, list[int]] = {"forward": [], "backward": []}
    sources: list[str] = []
    compared: list[int] = []
    inner = functools.partial(compile_graph, passes)
    compiled = torch.compile(there, backend=functools.partial(compile_fx, inner_compile=inner), dynamic=False)

    def compare(i: int) -> None:
        got = train(compiled, parameters, {k: v.to("mps") for k, v in given[i].items()})
        if len(got) != len(want[i]):
            raise AssertionError(f"{len(got)} values, and {len(want[i])} were expected")
        for place, (here, cpu) in enumerate(zip(got, want[i])):
            torch.testing.assert_close(here.cpu(), cpu, rtol=1e-3, atol=1e-4, msg=lambda m: f"value {place}: {m}")
            compared.append(cpu.numel())

    def work(i: int, rounds: int) -> None:
        try:
            for _ in range(rounds):
                compare(i)
        except Exception as wrong:
            report["wrong"].append(f"{name}, thread {i}: {type(wrong).__name__}: {wrong}")

    compile_shader = torch.mps.compile_shader

    def compile_source(source: str) -> Any:
        sources.append(source)
        return compile_shader(source.replace(*sys.argv[2:4]) if sys.argv[2:] else source)

    torch.mps.compile_shader = compile_source
    # PyTorch 2.9.1 cannot compile in several threads at once, on any device, as their metrics are of one process: "Metric(s)
    # {'is_forward'} have already been set in the current context". https://github.com/pytorch/pytorch/pull/170605
    work(0, 1)
    torch.mps.compile_shader = compile_shader
    alone = copy.deepcopy(passes)
    threads = [threading.Thread(target=work, args=(i, ROUNDS)) for i in range(THREADS)]
    with torch.compiler.set_stance("fail_on_recompile"):
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    report["models"][name] = {
        **{key: len(runs) for key, runs in alone.items()},
        "sources": len(sources),
        "runs": sum(map(sum, passes.values())) - sum(map(sum, alone.values())),
        "compared": sum(compared),
    }
    for key, runs in passes.items():
        if any(n != 1 + THREADS * ROUNDS for n in runs):
            report["wrong"].append(f"{name}: its {key} graphs ran {runs} times, each should have {1 + THREADS * ROUNDS} times")


def main() -> None:
    config.compile_threads = 1  # no processes of its own
    torch.manual_seed(0)
    with fresh_cache():
        for name, (model, make) in models().items():
            if sys.argv[1:2] in ([], [name]):
                check(name, model, make)
    print(json.dumps({**report, "findings": findings()}))


if __name__ == "__main__":
    main()
