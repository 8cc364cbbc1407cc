"""The Trainer of transformers, with a data set that the program defines."""
# kind: models
# requires: transformers accelerate

import tempfile

import torch
from shown import show
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainingArguments

torch.manual_seed(0)
small = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
model = BertForSequenceClassification(BertConfig(**small, num_labels=2))
tokens = torch.randint(0, 30, (32, 6))
data = [{"input_ids": row, "labels": int(row[0] > 15)} for row in tokens]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        max_steps=20,
        per_device_train_batch_size=8,
        learning_rate=1e-2,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        logging_strategy="no",
        use_cpu=True,
        seed=0,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data)
    trainer.remove_callback(PrinterCallback)  # this callback prints times
    print("steps", trainer.train().global_step)
    show("loss", trainer.evaluate()["eval_loss"])
    show("predictions", torch.tensor(trainer.predict(data).predictions))
