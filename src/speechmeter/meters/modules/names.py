"""What our ranges are called in a profile, so that they can be told from everybody else's."""

from __future__ import annotations

MODULE = "speechmeter.module::"
"""A call of the module whose path follows."""
PARAMETER = "speechmeter.parameter::"
"""A gradient has just been added to a parameter of the module whose path follows."""
LABEL = "speechmeter.label::"
"""A range that was opened by `speechmeter.label`."""
STAGE = "speechmeter.stage::"
"""A stage of a call."""
CALL = "speechmeter.call::"
"""A clocked part of the call whose number follows: all ranges of one number are one call."""
OURS = (MODULE, PARAMETER, LABEL, STAGE, CALL)
