# serial: yes
"""Zones recorded in signal handlers: none lost, none twice, wherever they strike."""

import pytest
from sonde_test import assert_consistent, counts_by_name, program, run


def interrupted(tmp_path, milliseconds, period_ns, *more, options=()):
    command = [program("signal_zones"), milliseconds, period_ns, *more]
    done = run(tmp_path / "run", *command, options=options)
    main, inner, handler = map(int, done.stdout.split())
    assert handler > milliseconds / 5, "the timer hardly fired"
    answer = done.report()
    counts = counts_by_name(answer)
    assert counts["main"] == main
    assert counts["inner"] == inner
    assert counts["handler"] == handler
    assert answer["summary"]["lost"] == 0
    assert_consistent(answer)
    return answer, (main, inner, handler)


@pytest.mark.parametrize("period_ns", [20_000, 97_000])
def test_zones_of_handler_and_loop_are_counted_exactly(tmp_path, period_ns):
    interrupted(tmp_path, 1500, period_ns)


def test_also_while_blocks_are_recycled(tmp_path):
    interrupted(tmp_path, 1500, 20_000, options=["--max-trace", "8MiB"])


def test_also_while_both_sides_register_new_names(tmp_path):
    answer, (_, _, handler) = interrupted(tmp_path, 1500, 20_000, "names")
    counts = counts_by_name(answer)
    assert sum(counts[f"handler {i}"] for i in range(16)) == handler


def test_values_attached_in_handler_and_loop_are_counted_exactly(tmp_path):
    answer, (_, inner, handler) = interrupted(tmp_path, 1000, 30_000)
    sums = {"calls": 0, "loops": 0}
    for operation in answer["operations"]:
        for name, value in (operation["custom"] or {}).items():
            sums[name] += value["sum"]
    assert sums == {"calls": handler, "loops": inner}
