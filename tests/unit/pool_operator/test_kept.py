"""Kept lists are never older than the last change that somebody told of."""

import asyncio
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.api.kinds import SERVICE
from zerolayer_operator.observe.kept import KeptLists, Object

PLACE = ("n", "p")


class World:
    """Looks read at once what there is, and are answered later."""

    def __init__(self) -> None:
        self.kept = KeptLists()
        self.version = self.told = 0
        self.doors: list[asyncio.Event] = []
        self.tasks: list[asyncio.Task[None]] = []

    def change(self) -> None:
        self.version += 1

    def tell(self) -> None:
        self.kept.drop(PLACE)
        self.told = self.version

    def ask(self) -> None:
        self.tasks.append(asyncio.create_task(self._check(self.told)))

    def answer(self) -> None:
        for door in self.doors:
            door.set()

    async def _look(self) -> list[Object]:
        read = [{"version": self.version}]
        door = asyncio.Event()
        self.doors.append(door)
        await door.wait()
        return read

    async def _check(self, least: int) -> None:
        (found,) = await self.kept.get(PLACE, SERVICE, self._look)
        assert found["version"] >= least


async def live_through(steps: list[Callable[[World], None]]) -> None:
    world = World()
    for step in steps:
        step(world)
        for _ in range(3):
            await asyncio.sleep(0)
    while not all(task.done() for task in world.tasks):
        world.answer()
        await asyncio.sleep(0)
    await asyncio.gather(*world.tasks)


@given(
    st.lists(st.sampled_from([World.change, World.tell, World.ask, World.answer]), min_size=5, max_size=30)
)
def test_nobody_gets_what_was_read_before_a_change_that_was_told(
    steps: list[Callable[[World], None]],
) -> None:
    asyncio.run(live_through(steps))


async def test_a_look_that_fails_keeps_nothing() -> None:
    kept, answers = KeptLists(), [OSError(), [{"kind": "Service"}]]

    async def look() -> list[Object]:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    for _ in range(2):
        try:
            found = await kept.get(PLACE, SERVICE, look)
        except OSError:
            found = []
    assert found == [{"kind": "Service"}]
