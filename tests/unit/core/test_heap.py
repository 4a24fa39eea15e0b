"""What is hidden from the garbage collector is given back, but for what somebody else has hidden."""

import gc

from speechmeter.core.heap import hidden_from_collector


def test_what_was_there_is_hidden_until_the_end():
    gc.unfreeze()
    with hidden_from_collector():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_has_hidden_stays_so():
    gc.freeze()
    with hidden_from_collector():
        pass
    assert gc.get_freeze_count() > 0
