"""A ResNet on a GPU in few kernels, written in Triton. Imports device and nets.

`run` is the way in: it computes what `ResNet.forward` does. `layers` says which networks it serves and how
kernels are launched for a layer, and `tables` has what a kernel does for all layers at once.
"""

POOLING = True
"""Whether networks whose stem pools, such as ImageNet's, run by these kernels, or else by torch's compiler:
`benchmarks/speed.py --stem imagenet` compares both in one run."""
