"""The sender sends everything until it is acknowledged, whatever the server does, on connections that it keeps."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from hookledger.demo.sender import Sender
from hookledger.demo.traffic import Traffic, make_traffic

HOST = "127.0.0.1"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CLOSING = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
AWAY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"
CUT = OK[:-1]
LONG = b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000
Answer = Callable[[bytes], bytes]


class Server:
    """A server of HTTP that answers as it is told; an answer that is no whole one ends the connection."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.connections = 0
        self.requests: Counter[bytes] = Counter()
        self.heads: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await self._head(reader):
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                self.requests[body] += 1
                self.heads.append(head)
                answer = self._answer(body)
                writer.write(answer)
                await writer.drain()
                if answer not in (OK, AWAY):
                    return
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _head(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return b""


def send(traffic: Traffic, answer: Answer, *, connections: int = 3) -> tuple[Sender, Server]:
    server = Server(answer)

    async def main() -> Sender:
        async with await asyncio.start_server(server, HOST, 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            sender = Sender(HOST, port, traffic.order, connections=connections)
            await sender.run()
            return sender

    return asyncio.run(main()), server


def first_time(special: bytes) -> Answer:
    """Something else than 200 at the first try of each body, for one in three bodies."""
    seen: set[bytes] = set()

    def answer(body: bytes) -> bytes:
        if body in seen or len(seen) % 3:
            seen.add(body)
            return OK
        seen.add(body)
        return special

    return answer


def test_all_is_sent_over_few_connections() -> None:
    traffic = make_traffic(100)
    sender, server = send(traffic, lambda _: OK)
    assert server.connections == 3
    assert server.requests == Counter(event.body() for event in traffic.order)
    assert sender.accepted == sender.tries == len(traffic.order)
    assert sender.acknowledged == {event.key for event in traffic.events}
    assert sender.unanswered == 0


@pytest.mark.parametrize("special", [b"", CUT, b"nonsense\r\n\r\n", b"HTTP/1.1 200\r\n\r\n", LONG, AWAY])
def test_what_had_no_2xx_is_sent_again(special: bytes) -> None:
    traffic = make_traffic(12)
    sender, server = send(traffic, first_time(special))
    again = server.requests.total() - len(traffic.order)
    assert again > 0
    assert sender.tries == server.requests.total()
    assert sender.accepted == len(traffic.order)
    assert sender.refused == ({503: again} if special == AWAY else {})
    assert sender.unanswered == (0 if special == AWAY else again)


def test_a_connection_that_the_server_ends_is_made_anew() -> None:
    traffic = make_traffic(10)
    sender, server = send(traffic, lambda _: CLOSING, connections=1)
    assert server.connections == len(traffic.order)
    assert sender.tries == len(traffic.order)


def test_a_server_that_comes_late_gets_everything() -> None:
    traffic = make_traffic(5)
    server = Server(lambda _: OK)

    async def main() -> Sender:
        listening = await asyncio.start_server(server, HOST, 0)
        port = listening.sockets[0].getsockname()[1]
        listening.close()
        await listening.wait_closed()
        sender = Sender(HOST, port, traffic.order, connections=2)
        sending = asyncio.create_task(sender.run())
        await until(lambda: sender.unanswered >= 2)
        async with await asyncio.start_server(server, HOST, port):
            await sending
        return sender

    sender = asyncio.run(main())
    assert sender.accepted == sender.tries == len(traffic.order)


def test_it_ends_when_it_is_cancelled() -> None:
    server = Server(lambda _: AWAY)

    async def main() -> Sender:
        async with await asyncio.start_server(server, HOST, 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            sender = Sender(HOST, port, make_traffic(50).order, connections=4)
            sending = asyncio.create_task(sender.run())
            await until(lambda: sender.refused[503] >= 4)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            return sender

    assert asyncio.run(main()).accepted == 0


def test_it_tells_how_many_were_acknowledged() -> None:
    told: list[int] = []
    traffic = make_traffic(20)

    async def main() -> None:
        async with await asyncio.start_server(Server(lambda _: OK), HOST, 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            await Sender(HOST, port, traffic.order, connections=4, on_acknowledged=told.append).run()

    asyncio.run(main())
    assert told == list(range(1, len(traffic.order) + 1))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a state of the sender, which tells nobody of it
            await asyncio.sleep(0.01)
