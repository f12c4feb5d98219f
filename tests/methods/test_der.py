"""DER's auxiliary targets."""

from helpers.formulas import TASK, Y
from jioc.methods import der


def test_der_auxiliary_targets() -> None:
    slow = [0 if y < 5 else y - 5 + 1 for y in Y.tolist()]
    assert der.aux_targets(Y, TASK).tolist() == slow == [0, 0, 0, 1, 2, 1]
