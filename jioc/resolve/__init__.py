"""From the settings that a person gave to those that a run uses: derived, checked, merged; recipes."""
