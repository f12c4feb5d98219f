"""Tables, the page and figures, made from result.json files alone. No torch, no weights.

`runs.py` reads results and puts them into groups (`group.py`), `labels.py` names the groups, `looks.py` says
how they are drawn, `alerts.py` what is odd about them, `losses.py` reads their logs, `paper.py` holds the
paper's own figures. From groups `tables.py`, `page.py` and `figures.py` make what is shown.
May import what stands above it and loads no torch: `results`, `config/`, `data/catalogue`, `methods/specs`,
`resolve/`.
"""
