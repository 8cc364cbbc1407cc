"""Models of transformers that are created from small configurations: forward, backward and 20 steps of training."""
# kind: models
# requires: transformers
# cases: bert gpt2 distilbert roberta electra albert opt llama mistral gpt_neox t5 bart vit resnet convnext clip

import sys

import torch
import transformers
from shown import show, train

name = sys.argv[1]
small = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
images = {"image_size": 16, "num_channels": 3, "patch_size": 4}
settings = {
    "bert": ("BertForMaskedLM", "BertConfig", small),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 1, "eos_token_id": 2},
    ),
    "distilbert": (
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": 50, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    ),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", small),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", {**small, "embedding_size": 16}),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", {**small, "embedding_size": 8}),
    "opt": ("OPTForCausalLM", "OPTConfig", {**small, "ffn_dim": 32, "word_embed_proj_dim": 16}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", small),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**small, "num_key_value_heads": 1}),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", small),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": 50,
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 32,
            "num_layers": 2,
            "num_heads": 2,
            "decoder_start_token_id": 0,
        },
    ),
    "bart": (
        "BartForConditionalGeneration",
        "BartConfig",
        {
            "vocab_size": 50,
            "d_model": 16,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
        },
    ),
    "vit": ("ViTForImageClassification", "ViTConfig", {**small, **images, "num_labels": 4}),
    "resnet": (
        "ResNetForImageClassification",
        "ResNetConfig",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic", "num_labels": 4},
    ),
    "convnext": (
        "ConvNextForImageClassification",
        "ConvNextConfig",
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "num_labels": 4},
    ),
    "clip": (
        "CLIPModel",
        "CLIPConfig",
        {"text_config": small, "vision_config": {**small, **images}, "projection_dim": 8},
    ),
}

torch.manual_seed(0)
model_name, config_name, options = settings[name]
model = getattr(transformers, model_name)(getattr(transformers, config_name)(**options))
tokens, pixels = torch.randint(3, 50, (4, 7)), torch.randn(4, 3, 16, 16)
if name in ("vit", "resnet", "convnext"):
    inputs = {"pixel_values": pixels, "labels": torch.tensor([0, 1, 2, 3])}
elif name == "clip":
    inputs = {"input_ids": tokens, "pixel_values": pixels, "return_loss": True}
else:
    inputs = {"input_ids": tokens, "labels": tokens, "attention_mask": torch.ones_like(tokens)}
model.eval()
with torch.no_grad():
    output = model(**inputs)
show("output", type(output).__name__, output.loss, output.logits_per_image if name == "clip" else output.logits)
train(model.train().parameters(), lambda: model(**inputs).loss, lr=0.05)
