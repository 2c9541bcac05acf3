# SPDX-License-Identifier: Apache-2.0
"""Clients of memcached whose answers are the same every time; run by memcached.sh with the path of its socket."""
import hashlib
import socket
import sys
import threading


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def ask(self, command, lines=1):
        self.socket.sendall(command)
        return [self.file.readline() for _ in range(lines)]

    def get(self, keys):
        self.socket.sendall(b"gets " + b" ".join(keys) + b"\r\n")
        found = {}
        while (head := self.file.readline()) != b"END\r\n":
            _, key, flags, length, _ = head.split()
            found[key] = (flags, self.file.read(int(length)))
            self.file.read(2)
        return found


def value(index, generation):
    return (f"{index}-{generation}-" * (1 + (index * 37 + generation * 11) % 400)).encode()


def session(path, number, answers):
    client = Client(path)
    digest = hashlib.sha256()
    keys = [f"key:{number}:{i}".encode() for i in range(700)]
    for generation in range(4):
        batch = []
        for i, key in enumerate(keys):
            data = value(i, generation)
            batch.append(b"set %b %d 0 %d\r\n%b\r\n" % (key, i, len(data), data))
        digest.update(b"".join(client.ask(b"".join(batch), len(batch))))
        for start in range(0, len(keys), 50):
            found = client.get(keys[start:start + 50])
            for i, key in enumerate(keys[start:start + 50], start):
                if found[key] != (str(i).encode(), value(i, generation)):
                    raise AssertionError(f"{key} of generation {generation} is damaged")
        for key in keys[::3]:
            digest.update(client.ask(b"append %b 0 0 300\r\n%b\r\n" % (key, b"a" * 300))[0])
        for key in keys[1::3]:
            digest.update(client.ask(b"delete %b\r\n" % key)[0])
        large = bytes(str(generation), "ascii") * 700000
        digest.update(client.ask(b"set large:%d 0 0 %d\r\n%b\r\n" % (number, len(large), large))[0])
        if client.get([b"large:%d" % number])[b"large:%d" % number][1] != large:
            raise AssertionError("a large value is damaged")
        client.ask(b"set count:%d 0 0 1\r\n0\r\n" % number)
        for _ in range(200):
            last = client.ask(b"incr count:%d 7\r\n" % number)[0]
        digest.update(last)
    answers[number] = digest.hexdigest()


def main():
    path = sys.argv[1]
    for _ in range(200):
        Client(path).ask(b"version\r\n")  # connections that come and go
    answers = [None] * 12
    threads = [threading.Thread(target=session, args=(path, i, answers)) for i in range(len(answers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(*answers, sep="\n")
    client = Client(path)
    client.socket.sendall(b"stats\r\n")
    while (line := client.file.readline()) != b"END\r\n":
        if line.split()[1] in (b"cmd_set", b"cmd_get", b"get_hits", b"curr_items", b"incr_hits", b"evictions"):
            print(line.decode().strip())
    print(client.ask(b"flush_all\r\n"))
    sys.exit(None in answers)


if __name__ == "__main__":
    main()
