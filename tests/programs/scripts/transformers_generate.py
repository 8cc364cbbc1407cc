"""Text generation by a small GPT-2: greedy, by sampling and by beam search, also after saving and loading."""
# kind: models
# requires: transformers

import tempfile

import torch
from shown import show
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2))
model.eval()
start = torch.tensor([[5, 6, 7], [8, 9, 10]])
options = {"attention_mask": torch.ones_like(start), "max_new_tokens": 8, "pad_token_id": 0}
print("greedy", model.generate(start, do_sample=False, **options).tolist())
print("beams", model.generate(start, num_beams=3, do_sample=False, **options).tolist())
torch.manual_seed(1)
print("sampled", model.generate(start, do_sample=True, top_k=10, **options).tolist())
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    loaded = GPT2LMHeadModel.from_pretrained(folder)
show("the same", torch.equal(loaded(start).logits, model(start).logits))
