"""Programs written for PyTorch, on libraries from their own wheels, and the command that runs them: `python -m tests.programs`.

`scripts/` holds the programs and the output of each with PyTorch; `constraints.txt` the versions of the libraries; `results.txt`
the results of the last complete run. Comments after the docstring of a program describe it:

    # kind: models                      the row of the table in docs/howto/run-a-pytorch-script.md
    # requires: timm torchvision        what is installed for it, by its name on PyPI
    # cases: resnet18 densenet121       arguments; the program runs once with each
    # stops: densenet121 for a reason   why it, or one of its cases, does not run here, where that is known
"""
