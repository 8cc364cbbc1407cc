"""The wrappers that report calls of composite functions."""

import threading

from adjoint.aten import profiled_functions


def test_threads_that_need_the_wrappers_first_and_at_once_get_the_same(monkeypatch):
    both = threading.Barrier(2)
    monkeypatch.setattr(profiled_functions, "_made", {})
    monkeypatch.setattr(profiled_functions, "load_all", lambda: both.wait(10))
    found = []
    threads = [threading.Thread(target=lambda: found.append(profiled_functions._watches())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] is found[1]
