"""What runs beside a test."""

from zerolayer_dev.testing.background import repeated
from zerolayer_dev.testing.waiting import wait_for


def test_it_is_done_again_and_again_until_the_block_ends() -> None:
    done: list[None] = []
    with repeated(lambda: done.append(None), every_s=0.001, name="test"):
        wait_for(lambda: len(done) >= 3, what="three times", seconds=10)
    after = len(done)

    with repeated(lambda: None, every_s=60, name="another"):
        pass  # ends at once, however long the pause is
    assert len(done) == after
