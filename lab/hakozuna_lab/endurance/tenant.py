# SPDX-License-Identifier: Apache-2.0
"""A service in Python for services.py, which starts it under the heap that is looked at: a line on its socket names
what it does, and it answers when that is done. It needs nothing of the lab, and keeps what it was told to leak in each
round."""

import contextlib
import gc
import multiprocessing
import signal
import socket
import sys
import threading
import time

PIECES = 2_000
REFUSED_SECONDS = 0.005

held: list[object] = []
leaked: list[bytes] = []


def piece(number: int) -> object:
    """Of some kind and size: up to 3 KB of small blocks, or up to 120 KB at once."""
    if number % 8 == 0:
        return bytearray(number * 7919 % 120_000)
    return {"text": "x" * (number * 37 % 1500), "list": [str(i) for i in range(number % 30)]}


def grow() -> None:
    """What is refused is asked for again, until there is memory."""
    for number in range(PIECES):
        while True:
            try:
                held.append(piece(number))
                break
            except MemoryError:
                time.sleep(REFUSED_SECONDS)


def threads() -> None:
    """Each makes what the main thread frees."""
    passed: list[list[str]] = []

    def work() -> None:
        passed.append([str(i) * (i % 40) for i in range(2_000)])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    passed.clear()


def in_child() -> None:
    """Frees what its parent made, and asks for as much."""
    del held[::2]
    held.extend(piece(number) for number in range(0, PIECES, 3))


def forks() -> None:
    children = [multiprocessing.get_context("fork").Process(target=in_child) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        if child.exitcode != 0:
            sys.exit(f"a child ended with {child.exitcode}")


def free() -> None:
    held.clear()
    leaked.append(b"x" * int(sys.argv[2]))
    gc.collect()


def answer(client: socket.socket) -> None:
    work = {"grow": grow, "threads": threads, "forks": forks, "free": free}
    with client, client.makefile("rw", encoding="ascii") as lines:
        for line in lines:
            work[line.strip()]()
            lines.write("done\n")
            lines.flush()


def on_signal(number: int, frame: object) -> None:
    """Allocates, as handlers in Python do."""
    with contextlib.suppress(MemoryError):
        [str(i) for i in range(300)]


def main() -> None:
    signal.signal(signal.SIGUSR1, on_signal)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen()
        while True:
            answer(server.accept()[0])


if __name__ == "__main__":
    main()
