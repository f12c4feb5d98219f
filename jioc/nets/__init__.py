"""Networks that grow. `catalogue` names the backbones without importing torch."""
