"""A TCP relay that a test can shut: connections through it end, and new ones are refused until it is opened."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

__all__ = ["Gate"]

_CHUNK = 65536


class Gate:
    """Relays a port of the loopback to another one."""

    def __init__(self, target: int) -> None:
        """Choose a port; nothing is relayed before `with`."""
        self._target = target
        self._open = threading.Event()
        self._open.set()
        self._connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._listener.close()
        self.shut()

    def shut(self) -> None:
        """End all connections and refuse new ones."""
        self._open.clear()
        self.cut()

    def cut(self) -> None:
        """End all connections; new ones are relayed."""
        found, self._connections = self._connections, []
        for each in found:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def open(self) -> None:
        """Relay again."""
        self._open.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                inner, _ = self._listener.accept()
                if not self._open.is_set():
                    inner.close()
                    continue
                outer = socket.create_connection(("127.0.0.1", self._target))
                self._connections += [inner, outer]
                for source, sink in ((inner, outer), (outer, inner)):
                    threading.Thread(target=self._relay, args=(source, sink), daemon=True).start()

    @staticmethod
    def _relay(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
