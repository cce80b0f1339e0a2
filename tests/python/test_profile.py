"""@sonde.profile on everything that can be called."""

import copy
import inspect
import pickle
import weakref

import pytest

import sonde


@sonde.profile
def at_top(a, b=2, *rest, c=3, **more):
    """The docstring."""
    return (a, b, rest, c, more)


class Thing:
    @sonde.profile
    def method(self, x):
        return self, x

    @classmethod
    @sonde.profile
    def below(cls):
        return cls

    @sonde.profile
    @classmethod
    def above(cls):
        return cls

    @sonde.profile
    @staticmethod
    def static(x):
        return x

    @property
    @sonde.profile
    def value(self):
        return 7


def test_arguments_and_results_pass_through():
    assert at_top(1) == (1, 2, (), 3, {})
    assert at_top(1, 3, 4, c=5, d=6) == (1, 3, (4,), 5, {"d": 6})
    with pytest.raises(TypeError, match="at_top"):
        at_top()


def test_it_still_looks_like_the_function():
    assert at_top.__name__ == "at_top" and at_top.__doc__ == "The docstring."
    assert list(inspect.signature(at_top).parameters) == ["a", "b", "rest", "c", "more"]
    assert inspect.unwrap(at_top) is at_top.__wrapped__
    assert pickle.loads(pickle.dumps(at_top)) is at_top
    assert copy.deepcopy(at_top) is at_top and weakref.ref(at_top)() is at_top
    at_top.attribute = 1
    assert at_top.attribute == 1


def test_methods_of_every_kind():
    thing = Thing()
    assert thing.method(3) == (thing, 3) and Thing.method(thing, 4) == (thing, 4)
    bound = thing.method
    assert bound(5) == (thing, 5)
    assert Thing.below() is Thing and thing.above() is Thing
    assert Thing.static(8) == 8 and thing.static(9) == 9 and thing.value == 7


def test_classes_and_other_things_are_refused():
    with pytest.raises(TypeError, match="class"):
        sonde.profile(Thing)
    with pytest.raises(TypeError, match="int"):
        sonde.profile(3)


def test_names_phases_and_places_are_recorded(run):
    answer = run(
        """
        import sonde
        @sonde.profile
        def plain(): pass
        @sonde.profile("named", phase="backward", component="trainer")
        def other(): pass
        @sonde.profile(phase="forward")
        def keyworded(): pass
        class A:
            @sonde.profile
            def method(self): pass
        with sonde.profile("block", phase="evaluation"):
            plain(); other(); keyworded(); A().method()
        sonde.profile(plain.__wrapped__)()
        """
    )
    paths = answer.paths()
    for name in ("plain", "named", "keyworded", "A.method"):
        assert paths[("block", name)] == 1
    assert paths[("plain",)] == 1
    plain = answer.operations("plain")[0]
    assert plain["file"].endswith(".py") and plain["line"] == 3
    assert answer.one("named")["component"] == "trainer"
    assert answer.one("keyworded")["phase"] == "forward"


def test_recursion_and_exceptions(run):
    answer = run(
        """
        import sonde
        @sonde.profile
        def down(n):
            if n == 0: raise KeyError("bottom")
            down(n - 1)
        try:
            down(3)
        except KeyError as e:
            assert e.args == ("bottom",)
        """
    )
    assert answer.paths() == {("down",) * n: 1 for n in range(1, 5)}
    assert answer.balanced()


def test_a_decorated_coroutine_function_is_one():
    @sonde.profile
    async def f():
        return 1

    @sonde.profile_async
    async def g():
        return 2

    assert inspect.iscoroutinefunction(f) and inspect.iscoroutinefunction(g)
    coroutine = f()
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    assert stop.value.value == 1
