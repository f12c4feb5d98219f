"""Attack the commands: odd files, odd words, kills. In the suite for seconds, with `make fuzz` for long.

`cases.py` draws attacks (hypothesis), `places.py` puts hostile files (`helpers/hostile.py`) where files are
read, `crash.py` stops commands at each file operation. `bench.py` carries a case out in a process of its own
(`worker.py`), which an audit hook watches (`watch.py`), and says what went wrong.
"""
