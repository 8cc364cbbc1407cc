"""Embeddings of sentences by a model of sentence-transformers, which is created from a configuration and trained on pairs."""
# kind: models
# requires: sentence-transformers

import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, losses, models, util
from shown import show, train
from transformers import BertConfig, BertModel, BertTokenizer

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d red blue cat dog runs sleeps".split()
    Path(folder, "vocab.txt").write_text("\n".join(words))
    BertTokenizer(f"{folder}/vocab.txt").save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    BertModel(config).save_pretrained(folder)
    base = models.Transformer(folder, max_seq_length=8)
model = SentenceTransformer(modules=[base, models.Pooling(16), models.Normalize()], device="cpu")
sentences = ["a red cat sleeps", "a blue dog runs", "a red dog runs"]
vectors = model.encode(sentences, convert_to_tensor=True, show_progress_bar=False)
show("vectors", vectors, util.cos_sim(vectors, vectors))
loss = losses.MultipleNegativesRankingLoss(model)
pairs = [model.tokenize(sentences), model.tokenize(["cat", "blue", "dog"])]
model.eval()
train(model.parameters(), lambda: loss([dict(pair) for pair in pairs], None), steps=8, lr=0.01)
