"""What a data set keeps that workers will copy: named by its length, without running any
code of the program."""

from collections import OrderedDict

from sonde._torch.objects import largest


class Records:
    def __init__(self, **fields):
        self.__dict__.update(fields)

    @property
    def trap(self):
        raise AssertionError("a property was read")


class Subset(Records):
    pass


def test_the_container_with_most_objects_is_named():
    many = Records(names=["a"] * 30_000, events=[[1, 2, 3]] * 20_000, few=[1] * 10)
    assert largest(many) == "Records.events: list of 20,000 list"


def test_small_ones_are_not_worth_a_word():
    assert largest(Records(names=["a"] * 9_999)) == ""
    assert largest(object()) == ""


def test_the_data_set_inside_another_is_looked_at():
    inner = Records(by_name={str(i): i for i in range(12_000)})
    assert largest(Subset(dataset=inner, indices=range(5))) == (
        "Records.by_name: dict of 12,000 int"
    )
    assert largest(Subset(datasets=[inner, inner])).startswith("Records.by_name")


def test_a_data_set_that_holds_itself_comes_to_an_end():
    loop = Records(names=("a",) * 10_000)
    loop.dataset = Subset(dataset=loop)
    assert largest(loop) == "Records.names: tuple of 10,000 str"


def test_a_container_that_counts_otherwise_is_not_asked():
    class Odd(OrderedDict):
        def __len__(self):
            raise AssertionError("the program's len() was called")

        def values(self):
            raise AssertionError("the program's values() was called")

    odd = Odd((i, i) for i in range(10_000))
    assert largest(Records(odd=odd)) == "Records.odd: Odd of 10,000"
