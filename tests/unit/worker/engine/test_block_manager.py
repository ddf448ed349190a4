import pytest

from zerolayer_worker.engine.block_manager import BlockManager, NoPageError, prefix_keys

KEYS = prefix_keys(b"model", range(40), 8)


def manager(pages: int = 8) -> BlockManager:
    return BlockManager(pages=pages, page=4, chunk=8)


def cached(one: BlockManager, chunks: int) -> list[int]:
    """Computes that many leading chunks and lets go of them."""
    pages = one.allocate(2 * chunks)
    for index in range(chunks):
        one.publish(KEYS[index], pages[2 * index : 2 * index + 2])
    one.release(pages)
    return pages


def test_the_lowest_free_pages_go_first() -> None:
    one = manager()
    first = one.allocate(4)
    one.release(first[1:3])
    assert (first, one.allocate(3)) == ([0, 1, 2, 3], [1, 2, 4])


def test_more_than_there_is_changes_nothing() -> None:
    one = manager()
    one.allocate(6)
    with pytest.raises(NoPageError):
        one.allocate(3)
    assert one.allocate(2) == [6, 7]


def test_a_beginning_is_found_as_far_as_it_goes() -> None:
    one = manager()
    pages = cached(one, 2)
    assert one.find(KEYS) == pages
    assert one.find(KEYS[1:]) == pages[2:]
    assert one.find(prefix_keys(b"other model", range(40), 8)) == []
    assert (one.used, one.cached, one.available) == (0, 4, 8)


def test_shared_pages_are_held_until_the_last_lets_go() -> None:
    one = manager()
    pages = cached(one, 1)
    assert one.idle(pages) == 2
    one.share(pages)
    one.share(pages)
    assert (one.used, one.cached, one.idle(pages)) == (2, 0, 0)
    one.release(pages)
    assert (one.used, one.cached) == (2, 0)
    one.release(pages)
    assert (one.used, one.cached) == (0, 2)


def test_cached_pages_are_taken_last_and_the_deepest_chunk_first() -> None:
    one = manager()
    cached(one, 2)
    assert one.allocate(4) == [4, 5, 6, 7]
    assert one.allocate(1) == [2]
    assert one.find(KEYS) == [0, 1]
    assert one.cached == 2


def test_what_was_used_last_is_forgotten_last() -> None:
    one = manager()
    pages = cached(one, 1)
    other = prefix_keys(b"model", range(1, 9), 8)
    later = one.allocate(2)
    one.publish(other[0], later)
    one.release(later)
    one.share(pages)
    one.release(pages)
    one.allocate(6)
    assert one.find(other) == []
    assert one.find(KEYS) == pages


def test_the_same_chunk_twice_is_kept_once() -> None:
    one = manager()
    first, second = one.allocate(2), one.allocate(2)
    one.publish(KEYS[0], first)
    one.publish(KEYS[0], second)
    one.release(second)
    assert (one.find(KEYS), one.cached) == (first, 0)


@pytest.mark.parametrize(("tokens", "keys"), [(7, 0), (8, 1), (15, 1), (16, 2)])
def test_only_whole_chunks_have_a_name(tokens: int, keys: int) -> None:
    assert prefix_keys(b"model", range(tokens), 8) == KEYS[:keys]


def test_a_name_says_all_that_came_before() -> None:
    other = prefix_keys(b"model", [1, *range(1, 40)], 8)
    assert not set(other) & set(KEYS)


@pytest.mark.parametrize(("pages", "page", "chunk"), [(0, 4, 8), (8, 0, 8), (8, 3, 8)])
def test_refuses_what_makes_no_sense(pages: int, page: int, chunk: int) -> None:
    with pytest.raises((ValueError, ZeroDivisionError)):
        BlockManager(pages=pages, page=page, chunk=chunk)
