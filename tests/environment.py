"""The environment of test processes: compiled Python code is cached, and each process uses its share of the processors.

`conftest` imports this module before all other modules, because Python and NumPy read the environment only once.

Python must write bytecode. Otherwise every process, and every program that a test starts, would compile the package. Threads of
OpenBLAS and PyTorch use a processor even while they wait. If every test process had one thread for each processor, the tests
would take up to three times as long. This module does not change the number of adjoint's threads.
"""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

PROCESSES = int(os.environ.get("ADJOINT_TEST_PROCESSES", os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
"""The number of test processes that run at the same time."""

SHARE = max(1, (os.cpu_count() or 1) // PROCESSES)
"""The number of threads that the libraries may use in each test process."""

if PROCESSES > 1:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(SHARE))
