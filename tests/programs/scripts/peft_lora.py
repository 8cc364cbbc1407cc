"""LoRA and other adapters of peft on a small model of transformers."""
# kind: models
# requires: peft transformers

import torch
from peft import IA3Config, LoraConfig, get_peft_model
from shown import show, train
from transformers import GPT2Config, GPT2LMHeadModel

tokens = torch.arange(3, 24).reshape(3, 7)
for config in (
    LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM"),
    IA3Config(
        target_modules=["c_attn", "mlp.c_proj"],
        feedforward_modules=["mlp.c_proj"],
        fan_in_fan_out=True,
        task_type="CAUSAL_LM",
    ),
):
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2))
    adapted = get_peft_model(model, config)
    show("trained", sum(p.numel() for p in adapted.parameters() if p.requires_grad))
    train(
        (p for p in adapted.parameters() if p.requires_grad),
        lambda m=adapted: m(input_ids=tokens, labels=tokens).loss,
        lr=0.1,
    )
    merged = adapted.eval().merge_and_unload()
    show("merged", merged(tokens).logits)
