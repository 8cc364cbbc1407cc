"""The share of the processors that a test process has, where pytest-xdist runs several. `conftest` imports it before NumPy.

Threads of OpenBLAS and of PyTorch wait for work without rest. If every test process had as many as there are processors, the
tests would take up to three times as long. The threads of adjoint stay as many as users have.
"""

import os

PROCESSES = int(os.environ.get("ADJOINT_TEST_PROCESSES", os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
"""How many test processes run side by side."""

SHARE = max(1, (os.cpu_count() or 1) // PROCESSES)
"""How many threads the libraries may have in each of them."""

if PROCESSES > 1:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(SHARE))
