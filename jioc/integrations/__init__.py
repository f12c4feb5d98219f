"""Ways into and out of other software: scikit-learn, Avalanche, ONNX, live logs.

Each module imports the package that it is for, so that only those who ask for it need that package.
May import everything but `cli/`.
"""
