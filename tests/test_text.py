"""Letters for an output that lacks others."""

from jioc.text import PLAINLY


def test_letters_that_an_encoding_lacks_have_stand_ins_and_bytes_of_a_name_stay() -> None:
    told = "12 – 3 ± 4 × 5… ä 猫 \udcff"
    assert told.encode("ascii", PLAINLY) == b"12 - 3 +- 4 x 5... ? ? \xff"
    assert told.encode("latin-1", PLAINLY) == "12 - 3 ± 4 × 5... ä ? ÿ".encode("latin-1")
    assert told.encode("utf-8", PLAINLY) == told.encode("utf-8", "surrogateescape")
