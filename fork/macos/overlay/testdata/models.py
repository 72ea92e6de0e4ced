"""A tiny model of transformers with random weights, through accelerate: values as on the CPU, and threads."""

import threading

import torch
from accelerate import Accelerator
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
model = LlamaForCausalLM(config).eval()
tokens = torch.randint(0, 64, (2, 12))
with torch.no_grad():
    expected = model(tokens).logits
    generated = model.generate(tokens, max_new_tokens=4, do_sample=False, pad_token_id=0)
accelerator = Accelerator()
assert accelerator.device.type == "mps", accelerator.device
model = accelerator.prepare(model)
wrong = []


def work():
    try:
        with torch.no_grad():
            for _ in range(3):
                got = model(tokens.to("mps")).logits.cpu()
                if not torch.allclose(got, expected, rtol=1e-3, atol=1e-3):
                    wrong.append(f"logits differ by {(got - expected).abs().max()}")
            if model.generate(tokens.to("mps"), max_new_tokens=4, do_sample=False, pad_token_id=0).cpu().tolist() != generated.tolist():
                wrong.append("generated tokens differ")
    except Exception as error:
        wrong.append(repr(error))


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
model.train()
optimizer = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=0.1))
losses = []
for _ in range(3):
    loss = model(tokens.to("mps"), labels=tokens.to("mps")).loss
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
if not losses[2] < losses[0]:
    wrong.append(f"the loss does not fall: {losses}")
print("wrong:", wrong[:3])
