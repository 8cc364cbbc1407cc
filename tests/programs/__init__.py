"""Programs for PyTorch that use libraries from unchanged wheels, and the command that runs the programs:

`python -m tests.programs`. `scripts/` contains the programs, and the output of each program with PyTorch. `constraints.txt`
contains the versions of the libraries, and `results.txt` the results of the last complete run. Comments after the docstring of a
program describe it:

    # kind: models                      the row of the table in docs/howto/run-a-pytorch-script.md
    # requires: timm torchvision        the required packages, by their names on PyPI
    # cases: resnet18 densenet121       arguments; the program runs once with each
    # stops: densenet121 for a reason   why the program or a case does not run, if known
"""
