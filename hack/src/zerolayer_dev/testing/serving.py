"""Serves an application of the worker's inside a test."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from zerolayer_worker.server.connections import Server, bind, build_server


@asynccontextmanager
async def running(
    app: object, identity: Sequence[tuple[bytes, bytes]] = ()
) -> AsyncIterator[tuple[str, Server]]:
    """Serves an application on a free port of the loopback."""
    listener = bind("127.0.0.1", 0)
    server = build_server(app, identity)  # type: ignore[arg-type]
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
        await asyncio.sleep(0.001)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", server
    finally:
        for each in server.servers:
            each.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        task.cancel()
        await asyncio.gather(task, *server.server_state.tasks, return_exceptions=True)
