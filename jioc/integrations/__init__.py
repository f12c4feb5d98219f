"""Other doors: scikit-learn, Avalanche, ONNX, live logs."""
