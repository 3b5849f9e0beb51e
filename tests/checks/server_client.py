"""A client of examples/server: server_client.py SERVER MODEL.so AMPRUN DATA FOLDER

Asks from several threads while the weights are replaced by a file of others, and by a file that is none.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import defaultdict

server, model, amprun, data, work = sys.argv[1:]
weights, address = f"{work}/served.safetensors", f"{work}/served.socket"
CLIENTS = 3


def write_weights(seed: int) -> None:
    """Weights of one step from another seed; the file is replaced as a whole."""
    command = [amprun, "train", model, "--data", f"idx:{data}", "--steps", "1", "--seed", str(seed), "--quiet"]
    subprocess.run([*command, "--save", f"{weights}.new"], check=True)
    os.replace(f"{weights}.new", weights)


class Client:
    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(address)
        inputs, self.outputs = struct.unpack("=II", self.read(8))
        self.request = struct.pack(f"={inputs}f", *(i % 7 / 7 for i in range(inputs)))

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            assert part, "the server hung up"
            data += part
        return data

    def ask(self) -> tuple[int, bytes]:
        self.socket.sendall(self.request[:100])  # in two parts
        self.socket.sendall(self.request[100:])
        answer = self.read(8 + 4 * self.outputs)
        return struct.unpack("=Q", answer[:8])[0], answer[8:]


def ask_all(stop: threading.Event, answers: dict[int, set[bytes]]) -> None:
    client = Client()
    while not stop.is_set():
        version, answer = client.ask()
        answers[version].add(answer)


def is_listening() -> bool:
    """The socket's file is there a moment before the server listens."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(address) == 0


def wait_for(what) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


write_weights(1)
process = subprocess.Popen([server, model, weights, address, "2"], stderr=subprocess.PIPE, text=True)
try:
    wait_for(is_listening)
    answers: list[dict[int, set[bytes]]] = [defaultdict(set) for _ in range(CLIENTS)]
    stop = threading.Event()
    threads = [threading.Thread(target=ask_all, args=(stop, a)) for a in answers]
    for thread in threads:
        thread.start()
    wait_for(lambda: all(1 in a for a in answers))
    write_weights(2)
    process.send_signal(signal.SIGHUP)
    wait_for(lambda: all(2 in a for a in answers))
    with open(weights, "w") as file:
        file.write("these are none")
    process.send_signal(signal.SIGHUP)
    assert "served.safetensors" in process.stderr.readline()
    time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    everything = [set().union(*(a[v] for a in answers)) for v in (1, 2)]
    assert all(set(a) == {1, 2} for a in answers), [set(a) for a in answers]
    assert len(everything[0]) == len(everything[1]) == 1, "two answers of one version"
    assert everything[0] != everything[1]
    print("version 1, then 2")
    assert Client().ask()[0] == 2
    print("wrong weights are refused, version 2 stays")
    process.send_signal(signal.SIGTERM)
    print(f"ended by SIGTERM: {process.wait(20)}")
    assert not os.path.exists(address)
finally:
    process.kill()
