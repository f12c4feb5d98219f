"""A ResNet on a GPU in few kernels."""
