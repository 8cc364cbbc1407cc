"""A LightningModule that the Trainer of pytorch-lightning fits, validates and tests."""
# kind: training
# requires: pytorch-lightning

import logging
import tempfile
import warnings

import pytorch_lightning as pl
import torch
from shown import show
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layers(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("validation", torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1]))

    test_step = validation_step

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)}


pl.seed_everything(0, verbose=False)
x = torch.randn(64, 8)
data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
model = Regression()
with tempfile.TemporaryDirectory() as folder:
    checkpoint = pl.callbacks.ModelCheckpoint(folder, monitor="validation")
    trainer = pl.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        callbacks=[checkpoint],
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
        default_root_dir=folder,
    )
    trainer.fit(model, data, data)
    show("fitted", trainer.global_step, *trainer.callback_metrics.values())
    trainer.test(model, data, verbose=False)
    again = Regression.load_from_checkpoint(checkpoint.best_model_path)
    show("loaded", *(p.norm() for p in again.parameters()))
