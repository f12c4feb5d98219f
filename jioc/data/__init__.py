"""From files to batches on the device. `catalogue` names the data sets without importing torch or numpy."""
