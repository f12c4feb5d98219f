"""The methods' own options: flags of `jioc run METHOD`, and keys of `options` in config.yaml."""

from typing import Literal

from jioc.config import TEMPERATURE, Above0, Amount, Options, Positive, Share, Within01


class Distilling(Options):
    kd_temperature: Above0 = TEMPERATURE
    """Temperature of the method's own distillation."""


class LwFOptions(Distilling):
    kd_weight: Amount = 3.0
    """Weight of the distillation."""


class ICaRLOptions(Distilling):
    kd_weight: Amount = 1.0
    """Weight of the distillation."""
    balance: Share = 0.0
    """Beta of the balanced cross-entropy after the first task: 0 is plain; near 1 rare classes count more."""


class BiCOptions(Distilling):
    held_share: Within01 = 0.1
    """Share of a class's exemplars that is held out to fit the bias."""
    bias_loss: Literal["paper", "pycil"] = "paper"
    """Fit the bias to a fixed network; or as in PyCIL, with softmax twice and drifting BN statistics."""


class PODNetOptions(Options):
    flat: Amount = 1.0
    """Weight of the distillation of the features."""
    spatial: Amount = 5.0
    """Weight of the distillation of the pooled stages."""
    margin: Amount = 0.6
    """By how much the label's similarity must exceed the others."""
    nca: Literal["paper", "pycil"] = "paper"
    """The paper's loss, or that of the code, whose margin cancels and whose denominator holds an extra 1."""


class SSILOptions(Distilling):
    kd_weight: Amount = 1.0
    """Weight of the task-wise distillation."""
    exemplar_share: Above0 = 0.25
    """Exemplars for each new image of a batch: 32 for 128."""


class DEROptions(Options):
    aux_weight: Amount = 1.0
    """Weight of the auxiliary loss."""


class FOSTEROptions(Distilling):
    lambda_okd: Amount = 1.0
    """Weight of the distillation while boosting."""
    beta1: Within01 = 0.96
    """Balance of the classes while boosting; towards 1 rare classes count more."""
    beta2: Within01 = 0.97
    """Balance of the classes while compressing."""
    oofc: Literal["ft", "az"] = "ft"
    """The weights from old features to new classes are trained (ft) or held at zero (az)."""


class COILOptions(Distilling):
    transport_weight: Amount = 1e-3
    """Weight of the two transport terms."""
    sinkhorn: Above0 = 0.464
    """Entropic regularisation of the transport."""
    transport_every: Positive = 30
    """Steps between two retrospective transports."""
