"""The stores of `torch.distributed`: one process, several threads, several processes."""

import threading
from datetime import timedelta

import pytest

import adjoint.distributed as dist
from adjoint.distributed import DistNetworkError, DistStoreError, QueueEmptyError


@pytest.fixture(params=["hash", "file", "server", "client", "prefix"])
def store(request, tmp_path):
    made = {
        "hash": dist.HashStore,
        "file": lambda: dist.FileStore(tmp_path / "store", 2),
        "server": lambda: dist.TCPStore("127.0.0.1", 0, is_master=True),
        "prefix": lambda: dist.PrefixStore("of one", dist.HashStore()),
    }
    server = dist.TCPStore("127.0.0.1", 0, is_master=True)
    made["client"] = lambda: dist.TCPStore("127.0.0.1", server.port)
    store = made[request.param]()
    store.set_timeout(timedelta(seconds=0.05))
    yield store
    server._server.close()


def test_values(store):
    assert store.timeout == timedelta(seconds=0.05)
    store.set("a", "x")
    store.set("b", b"\x00\xff")
    store.append("a", "yz")
    assert (store.get("a"), store.get("b")) == (b"xyz", b"\x00\xff")
    assert (store.add("n", 2), store.add("n", -5), store.get("n")) == (2, -3, b"-3")
    assert store.check(["a", "b"]) and not store.check(["a", "c"])
    assert (store.compare_set("c", "", "1"), store.compare_set("c", "2", "3")) == (b"1", b"1")
    assert (store.compare_set("c", "1", "4"), store.compare_set("d", "1", "2")) == (b"4", b"1")
    assert (store.delete_key("c"), store.delete_key("c")) == (True, False)
    assert (sorted(store.list_keys()), store.num_keys()) == (["a", "b", "n"], 3)
    store.multi_set(["k", "l"], ["1", "2"])
    assert store.multi_get(["k", "l"]) == [b"1", b"2"]
    with pytest.raises(ValueError, match="is no number"):
        store.add("a", 1)
    with pytest.raises(TypeError, match="must be str or bytes"):
        store.set("a", 1)


def test_queues(store):
    store.queue_push("q", "1")
    store.queue_push("q", "2")
    assert (store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q", block=False)) == (2, b"1", b"2")
    with pytest.raises(QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", block=False)
    with pytest.raises(DistStoreError, match="timeout"):
        store.queue_pop("q")


def test_waiting(store):
    for wait in (lambda: store.get("late"), lambda: store.wait(["late"], timedelta(seconds=0.02))):
        with pytest.raises(DistStoreError, match=r"wait timeout after [25]0ms, .*late"):
            wait()
    store.set_timeout(timedelta(seconds=20))
    timer = threading.Timer(0.05, lambda: store.clone().set("late", "v"))
    timer.start()
    assert store.get("late") == b"v"
    timer.join()


def test_a_prefix_keeps_keys_apart():
    whole = dist.HashStore()
    one, other = dist.PrefixStore("1", whole), dist.PrefixStore("2", whole)
    one.set("a", "x")
    assert not other.check(["a"])
    assert whole.get("1/a") == b"x"
    assert one.underlying_store is whole


def test_a_missing_server():
    with pytest.raises(DistNetworkError, match="timed out after 50ms"):
        dist.TCPStore("127.0.0.1", 1, timeout=timedelta(seconds=0.05))
    server = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(DistNetworkError, match="failed to listen"):
        dist.TCPStore("127.0.0.1", server.port, is_master=True)


def test_a_server_waits_for_its_clients():
    server = dist.TCPStore("127.0.0.1", 0, 3, is_master=True, wait_for_workers=False)
    clients = [threading.Thread(target=dist.TCPStore, args=("127.0.0.1", server.port, 3)) for _ in range(2)]
    for client in clients:
        client.start()
    server._meet(3)
    for client in clients:
        client.join()
    assert server.get("init/") == b"3"


def test_a_rendezvous(tmp_path):
    store, rank, size = next(dist.rendezvous(f"file://{tmp_path / 'meeting'}?rank=1&world_size=3"))
    assert (type(store), rank, size) == (dist.FileStore, 1, 3)
    with pytest.raises(RuntimeError, match="No rendezvous handler for http"):
        next(dist.rendezvous("http://x", 0, 2))
