"""A ResNet on a GPU in few kernels, written in Triton. Imports device and nets.

`run` is the way in: it computes what `ResNet.forward` does. `layers` says which networks it serves and how
kernels are launched for a layer; `forward` and `backward` launch them; `tables` holds what one kernel does
for all layers at once.
"""
