"""Networks that grow: backbones, heads, and how they are put together. Imports device and all above it.

`catalogue` names the backbones without importing torch. `fused` runs a ResNet on a GPU in few kernels.
"""
