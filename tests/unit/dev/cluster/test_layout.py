from itertools import combinations

import pytest

from zerolayer_dev.cluster.layout import SLOTS, Addresses, check_name, interface_name


def test_no_two_slots_share_an_address() -> None:
    slots = [Addresses.of_slot(slot) for slot in range(SLOTS)]
    for one, other in combinations(slots, 2):
        networks = [(a, b) for a in (one.services, one.pods) for b in (other.services, other.pods)]
        assert not any(a.overlaps(b) for a, b in networks)
        assert {one.host, one.node}.isdisjoint({other.host, other.node})


@pytest.mark.parametrize("slot", [0, 1, SLOTS - 1])
def test_parts_of_a_slot_do_not_overlap(slot: int) -> None:
    addresses = Addresses.of_slot(slot)
    assert not addresses.services.overlaps(addresses.pods)
    for end in (addresses.host, addresses.node):
        assert end not in addresses.services
        assert end not in addresses.pods
    assert addresses.kubernetes in addresses.services
    assert addresses.dns in addresses.services


@pytest.mark.parametrize("slot", [-1, SLOTS])
def test_slots_outside_of_the_range_are_refused(slot: int) -> None:
    with pytest.raises(ValueError, match="slot"):
        Addresses.of_slot(slot)


def test_interface_names_fit_into_the_kernels_fifteen_characters() -> None:
    assert max(len(interface_name(slot)) for slot in range(SLOTS)) <= 15


@pytest.mark.parametrize("name", ["e2e", "integration-12345", "a", "0-a"])
def test_names_that_can_be_host_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "../x", "a/b", "x" * 41])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cluster name"):
        check_name(name)
